/** `examples/github-actions.yml`: its step is run as a runner runs it, by `bash -e`, with the real npm and npx. */
import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { bench, MAIN } from './cli/support.js'
import { exampleText, parseYaml, withYaml } from './support/example-host.js'

interface Workflow {
  readonly jobs: {
    readonly deploy: {
      readonly 'timeout-minutes': number
      readonly steps: readonly {
        readonly name?: string
        readonly run?: string
        readonly env?: Record<string, string>
      }[]
    }
  }
}

const cli = bench()
const root = fileURLToPath(new URL('../..', import.meta.url))

/** A checkout after `npm ci`, whose migration is this shell text. */
function checkout(name: string, migrate: string) {
  const folder = join(cli.folder, name)
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
  symlinkSync(root, join(folder, 'node_modules/holdfast'))
  symlinkSync(MAIN, join(folder, 'node_modules/.bin/holdfast'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, scripts: { migrate: 'sh migrate.sh' } }))
  writeFileSync(join(folder, 'migrate.sh'), migrate)
  return { folder, store: `sqlite:${join(folder, 'leases.db')}` }
}

describe('the step of GitHub Actions', withYaml, () => {
  const workflow = parseYaml(exampleText('github-actions.yml')) as Workflow
  const { steps, ...job } = workflow.jobs.deploy
  const step = steps.find(({ name }) => name?.startsWith('Migrate'))
  assert.ok(step?.run && step.env)
  const { run, env } = step

  function start(folder: string, secret: string) {
    assert.deepEqual(env, { HOLDFAST_STORE: '${{ secrets.HOLDFAST_STORE }}' })
    const script = join(folder, 'step.sh')
    writeFileSync(script, run)
    const given = { HOLDFAST_STORE: secret, GITHUB_REPOSITORY: 'acme/shop', GITHUB_RUN_ID: '42', CI: 'true' }
    return cli.spawn('bash', ['-e', script], { cwd: folder, env: { ...given, npm_config_update_notifier: 'false' } })
  }

  test('has time for its wait', () => {
    const wait = Number(/--wait (\d+)m/.exec(run)?.[1])
    assert.ok(job['timeout-minutes'] > wait)
  })

  test('migrates under the lease, with the repository and the run as its label', async () => {
    const { folder, store } = checkout('migrates', 'holdfast ls --json')
    const { code, stdout, stderr } = await start(folder, store).ended
    assert.equal(code, 0, stderr)
    assert.match(stdout, /"key": ?"migrate:production"/)
    assert.match(stdout, /"label": ?"acme\/shop run 42"/)
    assert.equal((await cli.run(['show', '--store', store, 'migrate:production'])).code, 1)
  })

  test('a migration that fails fails the step, with its own code and no annotation', async () => {
    const { folder, store } = checkout('fails', 'exit 3')
    const { code, stdout } = await start(folder, store).ended
    assert.equal(code, 3)
    assert.doesNotMatch(stdout, /::error/)
  })

  test('a lost lease stops the migration, and the annotation says so', async () => {
    const { folder, store } = checkout('lost', 'echo up; sleep 300; echo done')
    const running = start(folder, store)
    await running.saw(/^up$/m)
    const revoked = await cli.run(['revoke', '--store', store, '--force', '--yes', 'migrate:production'])
    assert.equal(revoked.code, 0, revoked.stderr)
    const { code, stdout } = await running.ended
    assert.equal(code, 76)
    assert.match(stdout, /^::error::The lease was lost/m)
    assert.doesNotMatch(stdout, /^done$/m)
  })

  for (const [what, secret] of [
    ['for a store that this version does not have', 'redis://redis.example.com'],
    ['that is missing, which GitHub makes an empty text,', ''],
  ] as const) {
    test(`a secret ${what} fails the step, and nothing is migrated`, async () => {
      const { folder } = checkout(`secret-${secret.length}`, 'echo migrated')
      const { code, stdout } = await start(folder, secret).ended
      assert.deepEqual([code, stdout], [64, ''])
    })
  }
})
