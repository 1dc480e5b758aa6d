/** `examples/kubernetes-cronjob.yaml`: read as Kubernetes would, and its container's command run as process 1. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { bench } from './cli/support.js'
import { ExampleHost, exampleText, parseYaml, withYaml } from './support/example-host.js'
import { privileged } from './support/sqlite-hosts.js'

interface Container {
  readonly command: readonly string[]
  readonly args: readonly string[]
  readonly env: readonly {
    readonly name: string
    readonly valueFrom: {
      readonly secretKeyRef?: { readonly name: string; readonly key: string }
      readonly fieldRef?: { readonly fieldPath: string }
    }
  }[]
}
interface CronJob {
  readonly apiVersion: string
  readonly kind: string
  readonly spec: {
    readonly concurrencyPolicy: string
    readonly jobTemplate: {
      readonly spec: {
        readonly backoffLimit: number
        readonly template: {
          readonly spec: {
            readonly restartPolicy: string
            readonly terminationGracePeriodSeconds: number
            readonly containers: readonly [Container]
          }
        }
      }
    }
  }
}

const options = { ...privileged, ...withYaml }
const cli = bench()

describe('the CronJob', options, () => {
  const cronJob = parseYaml(exampleText('kubernetes-cronjob.yaml')) as CronJob
  const { spec } = cronJob.spec.jobTemplate.spec.template
  const { command, args, env } = spec.containers[0]

  test('says what its comments say', () => {
    assert.deepEqual([cronJob.apiVersion, cronJob.kind], ['batch/v1', 'CronJob'])
    assert.deepEqual([cronJob.spec.concurrencyPolicy, spec.restartPolicy], ['Forbid', 'Never'])
    const grace = Number(/^--grace=(\d+)s$/.exec(args.find((each) => each.startsWith('--grace')) ?? '')?.[1])
    assert.ok(spec.terminationGracePeriodSeconds > grace)
  })

  /** As the kubelet: the variables from where they come from, `$(NAME)` in arguments, and nothing else. */
  function start(host: ExampleHost, secrets: Record<string, string>) {
    const variables = env.map(({ name, valueFrom }) => {
      const value = valueFrom.secretKeyRef
        ? secrets[`${valueFrom.secretKeyRef.name}/${valueFrom.secretKeyRef.key}`]
        : { 'metadata.name': 'invoices-29-x7k' }[valueFrom.fieldRef?.fieldPath ?? '']
      assert.ok(value, name)
      return [name, value] as const
    })
    const expand = (text: string) => variables.reduce((all, [name, value]) => all.replaceAll(`$(${name})`, value), text)
    const quoted = [...variables.map(([name, value]) => `${name}=${value}`), ...command, ...args.map(expand)].map(
      (word) => `'${word}'`,
    )
    return host.start(`exec env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$HOME" ${quoted.join(' ')}`)
  }
  const hostWith = (name: string, job: string) => {
    const host = new ExampleHost(cli, name)
    host.command('send-invoices', job)
    return { host, secrets: { 'holdfast/store': host.store } }
  }
  /** holdfast, as this host numbers it; it is process 1 of the container. */
  const inContainer = (unshare: number) => Number(readFileSync(`/proc/${unshare}/task/${unshare}/children`, 'utf8'))

  test('runs, with the store from the secret, and the pod as its label', async () => {
    const { host, secrets } = hostWith('runs', 'cat /proc/$PPID/stat | cut -d" " -f1; holdfast ls --json')
    const { code, stdout, stderr } = await start(host, secrets).ended
    assert.deepEqual([code, stderr], [0, ''])
    const [parent, ...shown] = stdout.split('\n')
    assert.equal(parent, '1', 'holdfast is process 1')
    const [holding] = JSON.parse(shown.join('\n')) as [{ key: string; label: string }]
    assert.deepEqual([holding.key, holding.label], ['invoices', 'invoices-29-x7k'])
  })

  test('a pod that is deleted: the job gets TERM, and the lease is released', async () => {
    const { host, secrets } = hostWith(
      'deleted',
      `trap 'echo told; exit 5' TERM; echo up; while :; do sleep 0.02; done`,
    )
    const running = start(host, secrets)
    await running.saw(/^up$/m)
    process.kill(inContainer(running.pid), 'SIGTERM')
    const { code, stdout } = await running.ended
    assert.deepEqual([code, stdout], [5, 'up\ntold\n'])
    assert.equal((await cli.run(['show', '--store', host.store, 'invoices'])).code, 1)
  })

  test('a lost lease fails the pod; what the job left in sessions of their own is gone too', async () => {
    const { host, secrets } = hostWith('lost', `(setsid sh -c 'echo up; exec sleep 300' &); sleep 300`)
    const running = start(host, secrets)
    await running.saw(/^up$/m)
    const revoked = await cli.run(['revoke', '--store', host.store, '--force', '--yes', 'invoices'])
    assert.equal(revoked.code, 0, revoked.stderr)
    // It ends when everybody has who holds its stdout.
    assert.equal((await running.ended).code, 76)
  })

  test('a key that stays taken to the end of the wait is no failure', async () => {
    const { host, secrets } = hostWith('held', 'echo ran')
    const holder = cli.start(['run', '--store', host.store, 'invoices', '--', 'sh', '-c', 'echo up; sleep 300'])
    await holder.saw(/^up$/m)
    const running = start(host, secrets)
    await running.saw(/is held by/)
    const { code, stdout } = await running.ended
    assert.deepEqual([code, stdout], [0, ''])
    holder.process.kill('SIGTERM')
    await holder.ended
  })

  test('a secret for a store that this version does not have is refused, not ignored', async () => {
    const { host } = hostWith('redis', 'echo ran')
    const { code, stdout } = await start(host, { 'holdfast/store': 'redis://redis.example.com' }).ended
    assert.deepEqual([code, stdout], [64, ''])
  })
})
