/** `examples/deploy.sh`, as it stands: its migrations run one at a time, and a lost lease stops the deploy. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { bench, eventually, MAIN } from './cli/support.js'
import { exampleText } from './support/example-host.js'

const cli = bench()

/** A folder with the script, the two programs that it calls, and holdfast in PATH. */
function site(name: string, migrate: string, script = exampleText('deploy.sh')) {
  const folder = join(cli.folder, name)
  mkdirSync(join(folder, 'bin'), { recursive: true })
  const program = (path: string, text: string) => writeFileSync(join(folder, path), text, { mode: 0o755 })
  program('deploy.sh', script)
  program('bin/holdfast', `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`)
  program('migrate', `#!/bin/sh\n${migrate}\n`)
  program('restart', '#!/bin/sh\necho "restart $1" >> log\n')
  const store = `sqlite:${join(folder, 'leases.db')}`
  const env = { HOLDFAST_STORE: store, PATH: `${join(folder, 'bin')}${delimiter}${process.env.PATH}` }
  return {
    store,
    log: () => (existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8') : ''),
    write: (file: string) => writeFileSync(join(folder, file), ''),
    deploy: (release: string) => cli.spawn('./deploy.sh', [release], { cwd: folder, env }),
  }
}

/** Applies what is not applied yet; the first to come waits for the file `go`. */
const MIGRATE = `
[ ! -e applied ] || { echo "nothing to do for $1" >> log; exit 0; }
echo "begin $1" >> log
while [ ! -e go ]; do sleep 0.02; done
: > applied
echo "end $1" >> log`

test('two deploys at once migrate in turn; the second finds nothing left to do', async () => {
  const at = site('twice', MIGRATE)
  const first = at.deploy('1.0')
  await eventually('the first migrates', () => at.log().includes('begin 1.0'), 15_000)
  const second = at.deploy('1.1')
  await second.saw(/is held by deploy of 1\.0 by/)
  assert.equal(at.log(), 'begin 1.0\n')
  at.write('go')
  assert.equal((await first.ended).code, 0)
  const { code, stdout } = await second.ended
  assert.deepEqual([code, stdout], [0, 'deploy: 1.1 is live\n'])
  const lines = at.log().trim().split('\n')
  assert.deepEqual(lines.slice(0, 2), ['begin 1.0', 'end 1.0'])
  assert.deepEqual(lines.slice(2).sort(), ['nothing to do for 1.1', 'restart 1.0', 'restart 1.1'])
})

test('control: without holdfast both migrate at once', async () => {
  const guard = /holdfast run [^\n]+\n +migrate:production -- /
  assert.match(exampleText('deploy.sh'), guard)
  const at = site('unguarded', MIGRATE, exampleText('deploy.sh').replace(guard, ''))
  const both = ['1.0', '1.1'].map((release) => at.deploy(release))
  await eventually('both migrate', () => at.log().includes('begin 1.0') && at.log().includes('begin 1.1'))
  at.write('go')
  for (const each of both) assert.equal((await each.ended).code, 0)
})

test('a lost lease stops the migration, and the deploy with 76', async () => {
  const at = site('lost', MIGRATE)
  const running = at.deploy('1.0')
  await eventually('it migrates', () => at.log().includes('begin 1.0'), 15_000)
  const revoked = await cli.run(['revoke', '--store', at.store, '--force', '--yes', 'migrate:production'])
  assert.equal(revoked.code, 0, revoked.stderr)
  const { code, stdout, stderr } = await running.ended
  assert.deepEqual([code, stdout], [76, ''])
  assert.match(stderr, /^deploy: the lease was lost during the migration; 1\.0 was not deployed/m)
  at.write('go')
  assert.equal(at.log(), 'begin 1.0\n')
})

test('a migration that fails stops the deploy with its own code', async () => {
  const at = site('fails', 'exit 3')
  const { code, stderr } = await at.deploy('1.0').ended
  assert.equal(code, 3)
  assert.match(stderr, /the migration failed \(3\); 1\.0 was not deployed/)
  assert.equal(at.log(), '')
})
