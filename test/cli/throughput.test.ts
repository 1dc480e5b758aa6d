/** Bytes go through a command under a lease as they would without; `npm run bench throughput` says how fast. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { STREAM } from '../support/stream.js'
import { bench, MAIN } from './support.js'

const at = bench()
const MB = 1_000_000
const node = process.execPath
const under = (command: string) => `${node} ${MAIN} run k -- ${command}`
const through = (bytes: number, command: string) =>
  at.spawn('sh', ['-c', `${node} ${STREAM} write ${bytes} | ${command} | ${node} ${STREAM} check ${bytes}`]).ended

test('200 MB through stdin and stdout of the command arrive unchanged', async () => {
  const { code, stdout, stderr } = await through(200 * MB, under(`${node} ${STREAM} copy report`))
  assert.deepEqual([code, stdout, stderr], [0, '200000000 bytes unchanged\n', ''])
})

for (const [what, command, complaint] of [
  ['a byte lost at the front', 'tail -c +2', 'differs after 0 bytes'],
  ['a byte lost in the middle', "sh -c 'head -c 5000000; head -c 1 >/dev/null; cat'", 'differs after \\d+ bytes'],
  ['a byte lost at the end', `head -c ${10 * MB - 1}`, 'ended after 9999999 of 10000000 bytes'],
  ['a byte too many', "sh -c 'cat; echo'", 'goes on after 10000000 bytes'],
] as const) {
  test(`control: ${what} is noticed`, async () => {
    const { code, stdout, stderr } = await through(10 * MB, under(command))
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, new RegExp(complaint))
  })
}
