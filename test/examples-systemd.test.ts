/** `examples/systemd`: checked by systemd's own reader, and the command of the service run as it stands. */
import assert from 'node:assert/strict'
import { copyFileSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { alive, bench, eventually } from './cli/support.js'
import { ExampleHost, example, exampleText } from './support/example-host.js'
import { privileged } from './support/sqlite-hosts.js'
import { needsCommands } from './support/tmux.js'

const cli = bench()
const SERVICE = 'invoices.service'
const TIMER = 'invoices.timer'
const service = exampleText(`systemd/${SERVICE}`)
const setting = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(service)?.[1] ?? ''
const seconds = (text: string | undefined) => Number(/^(\d+)s$/.exec(text ?? '')?.[1])

test('systemd finds nothing wrong with the units', { ...privileged, ...needsCommands('systemd-analyze') }, async () => {
  const host = new ExampleHost(cli, 'verify')
  for (const name of [SERVICE, TIMER]) copyFileSync(example(`systemd/${name}`), host.path(name))
  const verify = () => host.start(`cd "$D" && systemd-analyze verify --man=no ./${SERVICE} ./${TIMER}`).ended
  const { code, stdout, stderr } = await verify()
  assert.deepEqual([code, stdout, stderr], [0, '', ''])

  // Control: a setting that does not exist, and a command that does not.
  host.write(SERVICE, service.replace('\nKillMode=', '\nKillModus='))
  assert.match((await verify()).stderr, /Unknown key.*'KillModus'/)
  host.write(SERVICE, service.replace('/usr/local/bin/holdfast', '/usr/local/bin/hold'))
  assert.match((await verify()).stderr, /hold is not executable/)
})

test('the times fit: after a lost lease, and after systemctl stop', () => {
  const grace = seconds(/--grace (\S+)/.exec(setting('ExecStart'))?.[1])
  assert.ok(grace > 0 && seconds(setting('TimeoutStopSec')) >= grace)
})

describe('the command of the service', privileged, () => {
  // No quotes, no variables: words, as systemd splits them.
  const command = setting('ExecStart')
  assert.match(command, /^[\w/.: -]+$/)
  const start = (host: ExampleHost) =>
    host.start(
      `exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME="$HOME" ${setting('Environment')} ${command}`,
    )
  /** Notes each TERM, and ends with 3 when the file `go` is there. */
  const host = (name: string) => {
    const made = new ExampleHost(cli, name)
    made.command('send-invoices', `exec "${process.execPath}" "$D/job.mjs" "$D"`)
    made.write(
      'job.mjs',
      `import { appendFileSync, existsSync } from 'node:fs'
const folder = process.argv[2]
const note = (text) => appendFileSync(folder + '/log', text + '\\n')
process.on('SIGTERM', () => note('TERM'))
process.on('SIGUSR1', () => note('USR1'))
setInterval(() => existsSync(folder + '/go') && process.exit(3), 10)
note('up')
`,
    )
    return made
  }
  const count = (on: ExampleHost, line: string) =>
    on
      .text('log')
      .split('\n')
      .filter((each) => each === line).length
  const up = (on: ExampleHost) => eventually('the job is up', () => count(on, 'up') > 0, 15_000)

  test('ends with what the job ends with; meanwhile another is skipped, which counts as success', async () => {
    const on = host('runs')
    const first = start(on)
    await up(on)
    const second = await start(on).ended
    assert.equal(second.code, 75)
    assert.match(second.stderr, /"invoices" is held by invoices\.service/)
    assert.ok(setting('SuccessExitStatus').split(' ').includes('75'))
    on.write('go', '')
    assert.equal((await first.ended).code, 3)
  })

  test('a lost lease is a failure', async () => {
    const on = host('lost')
    const running = start(on)
    await up(on)
    const revoked = await cli.run(['revoke', '--store', on.store, '--force', '--yes', 'invoices'])
    assert.equal(revoked.code, 0, revoked.stderr)
    assert.equal((await running.ended).code, 76)
    assert.ok(!setting('SuccessExitStatus').split(' ').includes('76'))
  })

  for (const [mode, times] of [
    ['mixed', 1],
    ['control-group', 2],
  ] as const) {
    test(`stopped with KillMode=${mode}, the job gets TERM ${times === 1 ? 'once' : 'twice'}`, async () => {
      const on = host(mode)
      const running = start(on)
      await up(on)
      const { holdfast, job } = await processes(running.pid)
      process.kill(holdfast, 'SIGTERM')
      await eventually('TERM', () => count(on, 'TERM') === 1)
      if (mode === 'control-group') process.kill(job, 'SIGTERM')
      await eventually(`TERM ${times}`, () => count(on, 'TERM') === times)
      // Behind whatever holdfast handed on before.
      process.kill(holdfast, 'SIGUSR1')
      await eventually('USR1', () => count(on, 'USR1') === 1)
      assert.equal(count(on, 'TERM'), times)
      on.write('go', '')
      assert.equal((await running.ended).code, 3)
      assert.ok(![holdfast, job].some(alive))
      const shown = await cli.run(['show', '--store', on.store, 'invoices'])
      assert.equal(shown.code, 1, 'the lease was released')
    })
  }

  test('the unit says mixed', () => assert.equal(setting('KillMode'), 'mixed'))
})

/** Of a service, as this host numbers them: `unshare` has started holdfast, which has started the job. */
async function processes(unshare: number): Promise<{ holdfast: number; job: number }> {
  const childrenOf = (pid: number) =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  const holdfast = childrenOf(unshare)[0] ?? 0
  const isJob = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('job.mjs')
  return { holdfast, job: childrenOf(holdfast).find(isJob) ?? 0 }
}
