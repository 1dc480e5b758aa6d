/** `run --metrics-file`: what it says of one run and of many, and that it costs no run anything. */
import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { byLabel, lint, type Scrape, scrape, withPromtool } from '../support/promtool.js'
import { privileged } from '../support/sqlite-hosts.js'
import { bench, MAIN, ONE_LINE, type Options } from './support.js'

const cli = bench()
const isRoot = process.getuid?.() === 0
/** Any user but root, of no group. */
const NOBODY = ['--reuid', '65534', '--regid', '65534', '--clear-groups']
let jobs = 0
const TTL = ['--ttl', '1s']

/** A job with a file of its own. */
class Job {
  readonly name = `job${++jobs}`
  readonly path = join(cli.folder, `${this.name}.prom`)

  args(...args: readonly string[]): string[] {
    return ['run', '--metrics-file', this.path, ...args]
  }

  run(args: readonly string[], options: Options = {}) {
    return cli.run(this.args(...args), options)
  }

  text(): string {
    return readFileSync(this.path, 'utf8')
  }

  seen(): Scrape {
    return scrape(this.text())
  }

  /** Of a key that is named like the job. */
  value(name: string, key = this.name): number | undefined {
    return this.seen().get(`${name}{file="${this.name}",key="${key}"}`)
  }

  outcomes(): Record<string, number> {
    return byLabel(this.seen(), 'holdfast_runs_total', 'outcome')
  }

  last(): string[] {
    return Object.keys(byLabel(this.seen(), 'holdfast_last_run_outcome', 'outcome'))
  }
}

/** Names and labels of what a file has: dashboards rely on them, and the first ones are those of `holdfast/metrics`. */
const CONTRACT = {
  holdfast_acquire_attempts_total: 'file,key,outcome',
  holdfast_acquire_wait_seconds: 'file,key,le',
  holdfast_heartbeat_latency_seconds: 'file,key,le',
  holdfast_lease_acquired_total: 'file,key',
  holdfast_lease_hold_seconds: 'file,key,le',
  holdfast_lease_lost_total: 'file,key,reason',
  holdfast_last_run_acquired: 'file,key',
  holdfast_last_run_end_timestamp_seconds: 'file,key',
  holdfast_last_run_exit_code: 'file,key',
  holdfast_last_run_heartbeat_latency_seconds: 'file,key',
  holdfast_last_run_hold_seconds: 'file,key',
  holdfast_last_run_outcome: 'file,key,outcome',
  holdfast_last_run_start_timestamp_seconds: 'file,key',
  holdfast_last_run_wait_seconds: 'file,key',
  holdfast_last_success_timestamp_seconds: 'file,key',
  holdfast_runs_total: 'file,key,outcome',
}

describe('one run', () => {
  const job = new Job()

  test('says what it was, in seconds, in a file for all to read', async () => {
    const before = Date.now() / 1000
    const { code, stdout, stderr } = await job.run([...TTL, job.name, '--', 'sh', '-c', 'sleep 0.9; echo done'])
    const after = Date.now() / 1000
    assert.deepEqual([code, stdout, stderr], [0, 'done\n', ''])
    assert.equal(statSync(job.path).mode & 0o777, 0o644)
    const found = Object.keys(CONTRACT).map((name) => {
      const own = [...job.seen().keys()].filter((series) => new RegExp(`^${name}(_bucket)?\\{`).test(series))
      const labels = own.flatMap((series) => [...series.matchAll(/(\w+)="/g)].map(([, label]) => label))
      return [name, [...new Set(labels)].sort().join(',')]
    })
    assert.deepEqual(Object.fromEntries(found), CONTRACT)
    assert.deepEqual(
      [...job.text().matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name).sort(),
      Object.keys(CONTRACT).sort(),
    )

    assert.deepEqual(job.last(), ['completed'])
    assert.deepEqual([job.value('holdfast_last_run_exit_code'), job.value('holdfast_last_run_acquired')], [0, 1])
    const [start = 0, end = 0, success] = ['last_run_start', 'last_run_end', 'last_success'].map((name) =>
      job.value(`holdfast_${name}_timestamp_seconds`),
    )
    assert.ok(before <= start && start + 0.9 <= end && end <= after, `${before} ${start} ${end} ${after}`)
    assert.equal(success, end)
    const hold = job.value('holdfast_last_run_hold_seconds') ?? 0
    assert.ok(hold >= 0.9 && hold <= end - start, `${hold}`)
    const beats = job.value('holdfast_heartbeat_latency_seconds_count') ?? 0
    const slowest = job.value('holdfast_last_run_heartbeat_latency_seconds') ?? 0
    assert.ok(beats >= 2 && slowest > 0 && slowest < 0.5, `${beats} renewals, the slowest ${slowest} s`)
  })

  test('promtool has nothing to say', withPromtool, () => assert.equal(lint(job.text()), ''))

  test('the umask decides who may read it', async () => {
    const own = new Job()
    const script = 'umask 027; exec "$@"'
    await cli.spawn('sh', ['-c', script, 'sh', process.execPath, MAIN, ...own.args('k', '--', 'true')]).ended
    assert.equal(statSync(own.path).mode & 0o777, 0o640)
  })
})

describe('every outcome, with its exit code', () => {
  const exits = async (job: Job, args: readonly string[], code: number, outcome: string, options: Options = {}) => {
    const result = await job.run(args, options)
    assert.equal(result.code, code, result.stderr)
    assert.deepEqual([job.last(), job.outcomes()], [[outcome], { [outcome]: 1 }])
    return result
  }

  test('the command failed, was ended by a signal, was not found', async () => {
    for (const [script, code] of [
      ['exit 3', 3],
      ['kill -9 $$', 137],
    ] as const) {
      const job = new Job()
      await exits(job, [job.name, '--', 'sh', '-c', script], code, 'failed')
      assert.equal(job.value('holdfast_last_run_exit_code'), code)
      assert.equal(job.value('holdfast_last_success_timestamp_seconds'), 0)
    }
    const job = new Job()
    await exits(job, [job.name, '--', 'no-such-command'], 127, 'not-started')
    assert.equal(job.value('holdfast_last_run_exit_code'), 127)
  })

  test('the key was held: with its own exit code too, and with the time that was waited', async () => {
    const holder = cli.start(['run', 'taken', '--', 'sh', '-c', 'echo up; cat'], { stdin: 'open' })
    await holder.saw(/up/)
    const [once, waits] = [new Job(), new Job()]
    await exits(once, ['-n', '-E', '0', 'taken', '--', 'true'], 0, 'held')
    assert.deepEqual(
      [once.value('holdfast_last_run_exit_code', 'taken'), once.value('holdfast_last_run_acquired', 'taken')],
      [0, 0],
    )
    assert.equal(once.value('holdfast_last_success_timestamp_seconds', 'taken'), 0, 'skipped is not done')
    assert.deepEqual(byLabel(once.seen(), 'holdfast_acquire_attempts_total', 'outcome'), { held: 1 })
    assert.equal(once.value('holdfast_last_run_heartbeat_latency_seconds', 'taken'), undefined)

    await exits(new Job(), ['-n', '-E', '0', '--quiet', 'taken', '--', 'true'], 0, 'held')
    await exits(waits, ['--wait', '700ms', 'taken', '--', 'true'], 75, 'held')
    const waited = waits.value('holdfast_last_run_wait_seconds', 'taken') ?? 0
    assert.ok(waited >= 0.7 && waited < 3, `${waited}`)
    assert.equal(waits.value('holdfast_acquire_wait_seconds_count', 'taken'), 0)

    const interrupted = new Job()
    const waiter = cli.start(interrupted.args('taken', '--', 'true'))
    await waiter.saw(/waiting/)
    waiter.process.kill('SIGTERM')
    assert.equal((await waiter.ended).code, 143)
    assert.deepEqual(interrupted.last(), ['interrupted'])
    holder.process.stdin?.end()
    await holder.ended
  })

  test('the store is unavailable, or unsafe', async () => {
    const folder = join(cli.folder, 'stores')
    mkdirSync(join(folder, 'folder.db'), { recursive: true })
    writeFileSync(join(folder, 'no.db'), 'no database at all, '.repeat(100))
    await exits(new Job(), ['--store', `sqlite:${folder}/none/l.db`, 'k', '--', 'true'], 69, 'unavailable')
    await exits(new Job(), ['--store', `sqlite:${folder}/no.db`, 'k', '--', 'true'], 78, 'unsafe')
  })

  test('the lease was lost', async () => {
    const job = new Job()
    const runner = cli.start(job.args(...TTL, job.name, '--', 'sh', '-c', 'echo up; exec sleep 60'))
    await runner.saw(/up/)
    await cli.run(['revoke', job.name])
    assert.equal((await runner.ended).code, 76)
    assert.deepEqual([job.last(), job.outcomes()], [['lost'], { lost: 1 }])
    assert.deepEqual(byLabel(job.seen(), 'holdfast_lease_lost_total', 'reason'), { revoked: 1 })
    assert.equal(job.value('holdfast_last_run_exit_code'), 76)
  })

  test('a call that is refused is no run: nothing is written', async () => {
    const job = new Job()
    assert.equal((await job.run(['--ttl', '1', 'k', '--', 'true'])).code, 64)
    assert.throws(() => statSync(job.path), { code: 'ENOENT' })
  })
})

describe('many runs', () => {
  const run = (job: Job, script: string) => job.run([...TTL, job.name, '--', 'sh', '-c', script])

  test('counts add up; what the last success was outlives failures; nothing else is left in the folder', async () => {
    const job = new Job()
    await run(job, 'sleep 0.5')
    const success = job.value('holdfast_last_success_timestamp_seconds')
    const [wait, beats, hold] = ['acquire_wait', 'heartbeat_latency', 'lease_hold'].map((name) =>
      job.value(`holdfast_${name}_seconds_sum`),
    )
    await run(job, 'exit 4')
    await run(job, 'exit 4')
    assert.deepEqual(job.outcomes(), { completed: 1, failed: 2 })
    assert.equal(job.value('holdfast_last_success_timestamp_seconds'), success)
    assert.equal(job.value('holdfast_lease_acquired_total'), 3)
    assert.equal(job.value('holdfast_lease_hold_seconds_count'), 3)
    assert.ok((job.value('holdfast_lease_hold_seconds_sum') ?? 0) > (hold ?? 0))
    assert.ok((job.value('holdfast_acquire_wait_seconds_sum') ?? 0) > (wait ?? 0))
    assert.ok((job.value('holdfast_heartbeat_latency_seconds_sum') ?? 0) >= (beats ?? 0))
    assert.deepEqual(
      readdirSync(cli.folder).filter((name) => name.startsWith('.holdfast-')),
      [],
    )
  })

  test('a reader of the old file has all of it still: it is replaced, not written over', async () => {
    const job = new Job()
    await run(job, 'true')
    const old = job.text()
    const reader = await open(job.path)
    await run(job, 'true')
    assert.equal(await reader.readFile('utf8'), old)
    await reader.close()
    assert.notEqual(job.text(), old)
  })

  test('another key in the same file begins anew', async () => {
    const job = new Job()
    await run(job, 'true')
    await job.run(['other', '--', 'true'])
    assert.equal(job.value('holdfast_lease_acquired_total', 'other'), 1)
    assert.equal(job.value('holdfast_lease_acquired_total'), undefined)
  })

  for (const [what, damage] of [
    ['is cut off in a number', (text: string) => text.slice(0, text.lastIndexOf(' ') + 1)],
    ['is cut off behind a digit', (text: string) => text.replace(/ \d+\n$/, ' 10')],
    ['has a line that is none', (text: string) => `${text}holdfast_runs_total{file=\n`],
    ['is something else', () => 'node_uname_info 1\n'],
    ['is full of zeros', () => '\0'.repeat(4096)],
    ['is empty', () => ''],
  ] as const) {
    test(`an old file that ${what}: said in one line, counted anew, and the run is what it was`, async () => {
      const job = new Job()
      await run(job, 'true')
      writeFileSync(job.path, damage(job.text()))
      const { code, stderr } = await run(job, 'exit 5')
      assert.equal(code, 5)
      assert.match(stderr, ONE_LINE)
      assert.match(
        stderr,
        /could not read the counts in ".*" \(it is damaged, or was not written by holdfast\): they begin at 0 again/,
      )
      assert.deepEqual(job.outcomes(), { failed: 1 })
      assert.equal((await run(job, 'exit 5')).stderr, '')
      assert.deepEqual(job.outcomes(), { failed: 2 })
    })
  }

  test(
    'an old file without a part of a histogram, or with other buckets: that one begins anew',
    withPromtool,
    async () => {
      const job = new Job()
      await run(job, 'true')
      const text = job.text().replace(/^holdfast_lease_hold_seconds_bucket\{.*le="5"\}.*\n/m, '')
      writeFileSync(job.path, text.replace(/^(holdfast_acquire_wait_seconds_bucket\{.*)le="60"/m, '$1le="61"'))
      assert.equal((await run(job, 'true')).stderr, '')
      const count = (name: string) => job.value(`holdfast_${name}_seconds_count`)
      assert.deepEqual([count('lease_hold'), count('acquire_wait')], [1, 1])
      assert.equal(job.value('holdfast_lease_acquired_total'), 2)
      assert.equal(lint(job.text()), '')
    },
  )

  test('runs that write at once: the file is always a whole one, and counts none twice', withPromtool, async () => {
    const job = new Job()
    const results = await Promise.all(Array.from({ length: 6 }, () => job.run(['-n', job.name, '--', 'true'])))
    assert.ok(results.every(({ code, stderr }) => [0, 75].includes(code ?? -1) && !/metrics|counts/.test(stderr)))
    const counted = Object.values(job.outcomes()).reduce((sum, each) => sum + each, 0)
    assert.ok(counted >= 1 && counted <= 6, `${counted}`)
    assert.equal(lint(job.text()), '')
  })
})

test('show 7: many jobs contend for a key, some lose it; each file says what its runs said', withPromtool, async () => {
  const key = 'contended'
  const all = Array.from({ length: 5 }, () => new Job())
  const counted = new Map(all.map((job) => [job, { codes: {} as Record<string, number>, ran: 0 }]))
  await Promise.all(
    all.map(async (job, index) => {
      const wait = index % 2 === 0 ? [] : ['--wait', '150ms']
      for (let round = 0; round < 4; round++) {
        const isRevoked = index === 0 && round > 1
        const script = `echo ran; sleep ${isRevoked ? 60 : 0.2}`
        const runner = cli.start(job.args('--ttl', '3s', ...wait, key, '--', 'sh', '-c', script))
        if (isRevoked) {
          await runner.saw(/ran/)
          assert.equal((await cli.run(['revoke', key])).code, 0)
        }
        const { code, stdout, stderr } = await runner.ended
        assert.ok([0, 75, 76].includes(code ?? -1), `${code} ${stderr}`)
        const own = counted.get(job)
        if (!own) continue
        own.codes[`${code}`] = (own.codes[`${code}`] ?? 0) + 1
        own.ran += stdout === 'ran\n' ? 1 : 0
      }
    }),
  )
  const total = { '0': 0, '75': 0, '76': 0 } as Record<string, number>
  for (const [job, { codes, ran }] of counted) {
    assert.equal(lint(job.text()), '')
    const { completed, held, lost } = job.outcomes()
    assert.deepEqual([completed, held, lost], [codes['0'], codes['75'], codes['76']])
    assert.equal(job.value('holdfast_lease_acquired_total', key), ran)
    assert.equal(job.value('holdfast_lease_hold_seconds_count', key), ran)
    assert.equal(job.value('holdfast_acquire_wait_seconds_count', key), ran)
    const attempts = byLabel(job.seen(), 'holdfast_acquire_attempts_total', 'outcome')
    assert.equal(attempts.granted ?? 0, ran)
    assert.deepEqual(byLabel(job.seen(), 'holdfast_lease_lost_total', 'reason'), lost ? { revoked: lost } : {})
    for (const [code, count] of Object.entries(codes)) total[code] = (total[code] ?? 0) + count
  }
  assert.equal(total['76'], 2)
  assert.ok((total['75'] ?? 0) > 0 && (total['0'] ?? 0) >= 5, JSON.stringify(total))
  // A collector reads all files as one: series that were there twice would cost it every metric.
  assert.doesNotThrow(() => scrape(all.map((job) => job.text()).join('')))
})

describe('a file that cannot be written', () => {
  const never = join(cli.folder, 'never.db')
  const fifo = join(cli.folder, 'fifo.prom')
  const circle = join(cli.folder, 'circle.prom')
  symlinkSync('circle.prom', circle)

  for (const [what, path, message] of [
    ['another name', join(cli.folder, 'a.txt'), /must end in \.prom, since node_exporter reads no other file, but got/],
    ['no name', '', /must end in \.prom/],
    ['a name that is nothing but its end', join(cli.folder, '.prom'), /must end in \.prom/],
    [
      'a folder that is not there',
      join(cli.folder, 'none/a.prom'),
      /cannot be written: its folder must exist .*ENOENT/,
    ],
    ['a folder in its place', join(cli.folder, 'folder.prom'), /must name a file, but/],
    ['a pipe in its place', fifo, /must name a file, but/],
    ['a link that leads to itself', circle, /ELOOP/],
    ['a file in place of its folder', join(cli.folder, 'plain/a.prom'), /ENOTDIR/],
    ['a folder in which nobody can make a file', '/proc/self/a.prom', /cannot be written/],
    ['a name that is too long', join(cli.folder, `${'x'.repeat(300)}.prom`), /ENAMETOOLONG/],
  ] as const) {
    test(`${what}: exit 64, and nothing was acquired`, async () => {
      mkdirSync(join(cli.folder, 'folder.prom'), { recursive: true })
      writeFileSync(join(cli.folder, 'plain'), '')
      if (path === fifo) await cli.spawn('mkfifo', [fifo]).ended
      const args = ['run', '--store', `sqlite:${never}`, '--metrics-file', path, 'k', '--', 'echo', 'ran']
      const { code, stdout, stderr } = await cli.run(args)
      assert.deepEqual([code, stdout], [64, ''])
      assert.match(stderr, ONE_LINE)
      assert.match(stderr, message)
      assert.throws(() => statSync(never), { code: 'ENOENT' })
    })
  }

  test('in the end only: one line, and the exit code of the command', async () => {
    const folder = join(cli.folder, 'gone')
    mkdirSync(folder)
    const { code, stdout, stderr } = await cli.run([
      ...['run', '--metrics-file', join(folder, 'a.prom'), 'k', '--'],
      ...['sh', '-c', `rm -r ${folder}; echo ran; exit 7`],
    ])
    assert.deepEqual([code, stdout], [7, 'ran\n'])
    assert.match(stderr, ONE_LINE)
    assert.match(stderr, /could not write the metrics into ".*" \(ENOENT\): this run is not counted there/)
  })

  test(
    'a full disk keeps no job from running; the old file stays, whole, and nothing beside it',
    privileged,
    async () => {
      const folder = join(cli.folder, 'small')
      mkdirSync(folder)
      const file = join(folder, 'a.prom')
      const holdfast = `"${process.execPath}" "${MAIN}" run --metrics-file ${file} k --`
      const script = [
        `mount -t tmpfs -o size=64k none ${folder}`,
        `${holdfast} true`,
        `cp ${file} ${folder}/../before`,
        `cat /dev/zero > ${folder}/filler 2>/dev/null || true`,
        `${holdfast} sh -c 'echo ran; exit 7' || echo "exit $?"`,
        `cmp ${file} ${folder}/../before`,
        `ls -A ${folder}`,
      ]
      const { code, stdout, stderr } = await cli.spawn('unshare', ['--mount', 'sh', '-euc', script.join('\n')]).ended
      assert.deepEqual([code, stdout], [0, 'ran\nexit 7\na.prom\nfiller\n'], stderr)
      assert.match(stderr, ONE_LINE)
      assert.match(stderr, /could not write the metrics .*ENOSPC/)
    },
  )

  test('an old file that may not be read: said, and replaced by one that may', async () => {
    const folder = join(cli.folder, 'own')
    mkdirSync(folder)
    const file = join(folder, 'a.prom')
    writeFileSync(file, 'not for you', { mode: 0o000 })
    const args = ['run', '--store', `sqlite:${folder}/l.db`, '--metrics-file', file, 'k', '--', 'true']
    if (isRoot) for (const path of [folder, file]) chownSync(path, 65_534, 65_534)
    chmodSync(cli.folder, 0o755)
    const { code, stderr } = await (isRoot
      ? cli.spawn('setpriv', [...NOBODY, process.execPath, MAIN, ...args]).ended
      : cli.run(args))
    assert.equal(code, 0, stderr)
    assert.match(stderr, ONE_LINE)
    assert.match(stderr, /could not read the counts in ".*" \(EACCES\): they begin at 0 again/)
    assert.match(readFileSync(file, 'utf8'), /^holdfast_lease_acquired_total\{file="a",key="k"\} 1$/m)
  })
})

test('holdfast is killed: the file is that of the run before, so the last success grows old', async () => {
  const job = new Job()
  await job.run([job.name, '--', 'true'])
  const before = job.text()
  const runner = cli.start(job.args(job.name, '--', 'sh', '-c', 'echo pid $$; exec sleep 60'))
  await runner.saw(/pid/)
  runner.process.kill('SIGKILL')
  await runner.ended
  assert.equal(job.text(), before)
})
