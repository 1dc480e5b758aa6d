/** `examples/crontab`, installed by the real crontab and run by the real cron, whose minutes last a second here. */
import assert from 'node:assert/strict'
import { chmodSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { bench, eventually, type Running } from './cli/support.js'
import { ExampleHost, exampleText } from './support/example-host.js'
import { faketime, privileged, withFaketime } from './support/sqlite-hosts.js'

const CRON = '/usr/sbin/cron'
const options = {
  ...privileged,
  ...withFaketime,
  ...(existsSync(CRON) || process.env.CI ? {} : { skip: 'needs cron' }),
}
const cli = bench()

/** Writes down when it starts and ends, and what it was told; it ends when the file `go` is there. */
const JOB = `
exec 3>>"$D/log"
echo "start \${0##*/} $HOLDFAST_KEY $HOLDFAST_STORE" >&3
while [ ! -e "$D/go" ]; do sleep 0.02; done
echo "end \${0##*/}" >&3`

/** Starts cron at 03:14:30 with this crontab, with no other jobs of the machine, and a mailer that keeps what it gets. */
function cron(host: ExampleHost, crontab: string): Running {
  mkdirSync(host.path('sbin'))
  copyFileSync(CRON, host.path('sbin/cron'))
  chmodSync(host.path('sbin/cron'), 0o755)
  const mailer = `#!/bin/sh\ncat >> "${host.folder}/mail"\n`
  writeFileSync(host.path('sbin/sendmail'), mailer, { mode: 0o755 })
  for (const each of ['empty', 'spool']) mkdirSync(host.path(each))
  host.write('crontab', crontab)
  return host.start(`
    mount -t tmpfs tmpfs /run
    mount --bind "$D/sbin" /usr/sbin
    mount --bind "$D/empty" /etc/cron.d
    ! [ -e /etc/crontab ] || mount --bind /dev/null /etc/crontab
    mount --bind "$D/spool" /var/spool/cron
    mkdir -m 1730 /var/spool/cron/crontabs
    crontab "$D/crontab"
    export TZ=UTC LD_PRELOAD=${faketime} FAKETIME='@2026-12-01 03:14:30 x60'
    exec cron -f`)
}

const lines = (host: ExampleHost, start: string) =>
  host
    .text('log')
    .split('\n')
    .filter((line) => line.startsWith(start))

test(
  'a slow job is never run twice at once, its skipped runs send no mail; the nightly one runs too',
  options,
  async () => {
    const host = new ExampleHost(cli, 'guarded')
    host.command('send-invoices', JOB)
    host.command('backup', JOB)
    const holdfast = host
      .text('bin/holdfast')
      .split('\n')
      .at(-2)
      ?.replace(/^exec /, '')
    host.command('holdfast', `${holdfast}\ncode=$?\necho "exit $code $*" >> "$D/log"\nexit $code`)
    const running = cron(host, exampleText('crontab'))
    await eventually('two runs were skipped', () => lines(host, 'exit 0 run -n').length >= 2, 30_000)
    assert.deepEqual(lines(host, 'end'), [])
    assert.deepEqual(lines(host, 'start').sort(), [
      'start backup backup sqlite:/var/lib/holdfast/leases.db',
      'start send-invoices invoices sqlite:/var/lib/holdfast/leases.db',
    ])
    host.write('go', '')
    await eventually('both have ended', () => lines(host, 'end').length >= 2)
    await eventually('the next one has run', () => lines(host, 'end send-invoices').length >= 2, 30_000)
    assert.equal(host.text('mail'), '')
    running.process.kill('SIGKILL')
    await running.ended
  },
)

test('a lost lease stops the job, and is what the mail is about', options, async () => {
  const host = new ExampleHost(cli, 'lost')
  host.command('send-invoices', JOB)
  host.command('backup', 'true')
  const running = cron(host, exampleText('crontab'))
  await eventually('the job runs', () => lines(host, 'start send-invoices').length === 1, 15_000)
  const revoked = await cli.run(['revoke', '--store', host.store, '--force', '--yes', 'invoices'])
  assert.equal(revoked.code, 0, revoked.stderr)
  await eventually('mail', () => /exit 76/.test(host.text('mail')), 15_000)
  assert.match(host.text('mail'), /^To: root$/m)
  assert.match(host.text('mail'), /^holdfast: .*"invoices".*; exit 76: /m)
  assert.deepEqual(lines(host, 'end'), [])
  running.process.kill('SIGKILL')
  await running.ended
})

test('control: without holdfast, cron runs the job again while it still runs', options, async () => {
  const host = new ExampleHost(cli, 'unguarded')
  host.command('send-invoices', JOB)
  const guard = /holdfast run -n -E 0 --quiet invoices -- /
  assert.match(exampleText('crontab'), guard)
  const running = cron(host, exampleText('crontab').replace(guard, ''))
  await eventually('two at once', () => lines(host, 'start send-invoices').length >= 2, 30_000)
  assert.deepEqual(lines(host, 'end'), [])
  running.process.kill('SIGKILL')
  await running.ended
})
