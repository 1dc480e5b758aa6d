import { type CommandSpec, HELP, STORE } from './spec.js'

export const RUN: CommandSpec = {
  name: 'run',
  usage: 'holdfast run [options] <key> -- <command> [args…]',
  summary: 'hold the lease on <key> while a command runs',
  positionals: ['key'],
  required: 1,
  choice: 'key',
  wraps: true,
  options: [
    {
      name: 'ttl',
      value: 'DURATION',
      help: 'length of the lease; it is renewed while the command runs (default: 10s)',
    },
    { name: 'wait', value: 'DURATION', help: 'how long to wait for the key, or forever (default: forever)' },
    { name: 'no-wait', short: 'n', help: 'ask once; exit 75 when the key is held' },
    {
      name: 'conflict-exit-code',
      short: 'E',
      value: 'N',
      help: 'exit with N in place of 75 when the key is held, or the store not ready, to the end of the wait',
    },
    {
      name: 'grace',
      value: 'DURATION',
      help: 'time from TERM to KILL (default: the smaller of 5s and a fifth of the ttl)',
    },
    {
      name: 'min-hold',
      value: 'DURATION',
      help: 'the key stays taken at least this long, even if the command ends sooner',
    },
    {
      name: 'lock-delay',
      value: 'DURATION',
      help: 'after a loss the store keeps the key this much longer (default: 0s)',
    },
    {
      name: 'trust-restart',
      help: 'Redis: do not wait after a restart in which the server may have lost its leases; two may then hold one key (development only)',
    },
    { name: 'label', value: 'TEXT', help: 'who you are, for people (default: host:pid)' },
    {
      name: 'cgroup',
      help: 'put the command into a control group of its own, which nothing it starts can leave (Linux; needs a delegated group)',
    },
    {
      name: 'no-inherit-store',
      help: 'the command does not learn which store was asked; a nested holdfast then refuses to guess',
    },
    {
      name: 'metrics-file',
      value: 'FILE',
      choice: 'file',
      help: "write how it went into FILE (*.prom), for node_exporter's textfile collector",
    },
    { name: 'quiet', help: 'no progress on stderr, only errors' },
    {
      name: 'json-log',
      value: 'FILE',
      choice: 'file',
      help: "append what happens as lines of JSON; the last one tells the outcome from the command's own exit code",
    },
    ...STORE,
    HELP,
  ],
  notes: [
    'The command gets HOLDFAST_KEY, HOLDFAST_FENCE and HOLDFAST_STORE in its environment, and your stdin, stdout, stderr and signals. It is never run through a shell.',
    "If the lease cannot be renewed, the command and everything it started gets TERM, then KILL, all of it dead before the lease can be another's; exit 76.",
  ],
  examples: [
    ['holdfast run nightly -- ./backup.sh', 'one at a time; the second waits for the first'],
    ['holdfast run -n nightly -- ./backup.sh', 'skip this time if it is still running (exit 75)'],
    ['holdfast run --wait 5m -E 0 deploy -- make deploy', 'wait five minutes at most; being late is no failure'],
    ['holdfast run k -- sh -c \'echo "$HOLDFAST_FENCE"\'', 'a number that grows with each holder'],
    ['holdfast run --store redis://cache:6379 nightly -- ./backup.sh', 'one at a time among all hosts'],
    ['holdfast run --ttl 30s --grace 10s k -- ./worker', 'up to ten seconds to tidy up when the lease is at risk'],
  ],
}
