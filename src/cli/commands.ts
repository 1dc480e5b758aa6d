/** Every command and option: what the parser knows and what `--help` shows are this one table. */

export interface OptionSpec {
  /** Without the dashes. */
  readonly name: string
  readonly short?: string
  /** The word for its value in the help; absent for a switch. */
  readonly value?: string
  readonly repeatable?: boolean
  readonly help: string
}

export interface CommandSpec {
  readonly name: string
  readonly usage: string
  readonly summary: string
  /** Names of what comes without dashes. */
  readonly positionals: readonly string[]
  readonly required: number
  /** Whether a command to run follows after `--`. */
  readonly wraps: boolean
  readonly options: readonly OptionSpec[]
  /** What a person should know before using it: short paragraphs. */
  readonly notes: readonly string[]
  readonly examples: readonly (readonly [line: string, what: string])[]
}

const STORE: readonly OptionSpec[] = [
  {
    name: 'store',
    value: 'URL',
    repeatable: true,
    help: 'where leases are kept, such as sqlite:/var/lib/app/leases.db; else $HOLDFAST_STORE; else a file of yours',
  },
  { name: 'namespace', value: 'NAME', help: 'leases of one namespace see each other (default: default)' },
]
const JSON_OPTION: OptionSpec = { name: 'json', help: 'print JSON; fences are strings' }
const HELP: OptionSpec = { name: 'help', short: 'h', help: 'show this help' }

const RUN: CommandSpec = {
  name: 'run',
  usage: 'holdfast run [options] <key> -- <command> [args…]',
  summary: 'hold the lease on <key> while a command runs',
  positionals: ['key'],
  required: 1,
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
      help: "write how it went into FILE (*.prom), for node_exporter's textfile collector",
    },
    { name: 'quiet', help: 'no progress on stderr, only errors' },
    {
      name: 'json-log',
      value: 'FILE',
      help: "append what happens as lines of JSON; the last one tells the outcome from the command's own exit code",
    },
    ...STORE,
    HELP,
  ],
  notes: [
    'The command gets HOLDFAST_KEY, HOLDFAST_FENCE and HOLDFAST_STORE in its environment, and your stdin, stdout, stderr and signals. It is never run through a shell.',
    "If the lease cannot be renewed, the command and everything it started gets TERM, then KILL, all of it dead before the lease can be another's; exit 76.",
    "Exit codes: the command's own; 128+n if signal n ended it; 64 bad usage; 69 store unavailable; 75 held or not ready; 76 lost; 78 store unsafe; 126 not executable; 127 not found; 130 or 143 when a signal ended the wait.",
  ],
  examples: [
    ['holdfast run nightly -- ./backup.sh', 'one at a time; the second waits for the first'],
    ['holdfast run -n nightly -- ./backup.sh', 'skip this time if it is still running (exit 75)'],
    ['holdfast run --wait 5m -E 0 deploy -- make deploy', 'wait five minutes at most; being late is no failure'],
    ['holdfast run k -- sh -c \'echo "$HOLDFAST_FENCE"\'', 'a number that grows with each holder'],
    ['holdfast run --ttl 30s --grace 10s k -- ./worker', 'up to ten seconds to tidy up when the lease is at risk'],
  ],
}

const LS: CommandSpec = {
  name: 'ls',
  usage: 'holdfast ls [options] [prefix]',
  summary: 'list what is held',
  positionals: ['prefix'],
  required: 0,
  wraps: false,
  options: [JSON_OPTION, ...STORE, HELP],
  notes: ['For people and dashboards, never for decisions: the answer is old when it arrives.'],
  examples: [
    ['holdfast ls', 'everything in the default namespace'],
    ['holdfast ls job:', 'keys that begin with job:'],
    ['holdfast ls --json', 'one JSON array'],
  ],
}

const SHOW: CommandSpec = {
  name: 'show',
  usage: 'holdfast show [options] <key>',
  summary: 'show who holds <key>; exit 1 when it is free',
  positionals: ['key'],
  required: 1,
  wraps: false,
  options: [JSON_OPTION, ...STORE, HELP],
  notes: ['For people and dashboards, never for decisions: the answer is old when it arrives.'],
  examples: [
    ['holdfast show nightly', 'holder, fence, since when, time left'],
    ['holdfast show --json nightly', 'one JSON object, or null when the key is free'],
  ],
}

const REVOKE: CommandSpec = {
  name: 'revoke',
  usage: 'holdfast revoke [options] <key>',
  summary: 'ask for <key> back, or free it by force',
  positionals: ['key'],
  required: 1,
  wraps: false,
  options: [
    { name: 'force', help: 'free it now; the old holder may still be working: exclusion is your risk' },
    { name: 'yes', help: 'with --force: do not ask first' },
    JSON_OPTION,
    ...STORE,
    HELP,
  ],
  notes: [
    'Plain: the holder is told and its renewals are refused. The key stays taken until the holder lets go, or its ttl ends. A command under holdfast run gets TERM, then KILL after its grace.',
    'Exit code 1 when nobody holds the key.',
  ],
  examples: [
    ['holdfast revoke nightly', 'the holder stops its command and lets go'],
    ['holdfast revoke --force nightly', 'free at once; asks first on a terminal'],
    ['holdfast revoke --force --yes nightly', 'the same in a script'],
  ],
}

export const COMMANDS: readonly CommandSpec[] = [RUN, LS, SHOW, REVOKE]
