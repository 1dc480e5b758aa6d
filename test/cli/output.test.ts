/** What was asked for and could not be written is no success. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { bench, MAIN, ONE_LINE, type Running } from './support.js'

const cli = bench()
const env = { NODE: process.execPath, MAIN }

describe('a stdout that takes nothing: exit 74, one line', () => {
  let holder: Running
  before(async () => {
    holder = cli.start(['run', 'held', '--', 'sh', '-c', 'echo up; cat'], { stdin: 'open' })
    await holder.saw(/up/)
  })
  after(async () => {
    holder.process.stdin?.end()
    await holder.ended
  })

  for (const args of [
    'ls',
    'ls --json',
    'show held',
    'show held --json',
    'show free --json',
    'revoke free --json',
    '--help',
    '--version',
    'help ls',
    'show --help',
    'run --help',
  ]) {
    test(`${args} >/dev/full`, async () => {
      const { code, stderr } = await cli.spawn('sh', ['-c', `exec "$NODE" "$MAIN" ${args} >/dev/full`], { env }).ended
      assert.equal(code, 74, stderr)
      assert.match(stderr, ONE_LINE)
      assert.match(stderr, /could not write to stdout \(ENOSPC\); the output is incomplete/)
    })
  }

  test('a file that may not grow: what fits is written, and the rest is missed', async () => {
    const line = 'ulimit -f 1; trap "" XFSZ; exec "$NODE" "$MAIN" run --help >short'
    const { code, stderr } = await cli.spawn('sh', ['-c', line], { env }).ended
    assert.equal(code, 74, stderr)
    assert.match(stderr, /EFBIG/)
  })

  test('a stdout that was opened for reading', async () => {
    const { code, stderr } = await cli.spawn('sh', ['-c', 'exec "$NODE" "$MAIN" ls 1</dev/null'], { env }).ended
    assert.equal(code, 74, stderr)
    assert.match(stderr, /EBADF/)
  })
})

test('a stderr that takes nothing changes no exit code', async () => {
  for (const [args, expected] of [
    ['show free', 1],
    ['rnu', 64],
    ['run k -- sh -c "exit 3"', 3],
  ] as const) {
    const { code } = await cli.spawn('sh', ['-c', `exec "$NODE" "$MAIN" ${args} 2>/dev/full`], { env }).ended
    assert.equal(code, expected, args)
  }
})
