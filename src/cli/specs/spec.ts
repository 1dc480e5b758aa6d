/** What a command and an option are, and the options that several commands share. */

/** What a shell offers for a value: these words, which are all there are, or what it finds when it is asked. */
export type Choice = readonly string[] | 'key' | 'file' | 'store'

export interface OptionSpec {
  /** Without the dashes. */
  readonly name: string
  readonly short?: string
  /** The word for its value in the help; absent for a switch. */
  readonly value?: string
  readonly repeatable?: boolean
  readonly choice?: Choice
  readonly help: string
}

export interface CommandSpec {
  readonly name: string
  readonly usage: string
  readonly summary: string
  /** Names of what comes without dashes. */
  readonly positionals: readonly string[]
  readonly required: number
  /** Of what comes without dashes. */
  readonly choice?: Choice
  /** Whether a command to run follows after `--`. */
  readonly wraps: boolean
  readonly options: readonly OptionSpec[]
  /** What a person should know before using it: short paragraphs. */
  readonly notes: readonly string[]
  readonly examples: readonly (readonly [line: string, what: string])[]
}

export const STORE: readonly OptionSpec[] = [
  {
    name: 'store',
    value: 'URL',
    repeatable: true,
    choice: 'store',
    help: 'where leases are kept, such as sqlite:/var/lib/app/leases.db or redis://host:6379; else $HOLDFAST_STORE; else a file of yours',
  },
  { name: 'namespace', value: 'NAME', help: 'leases of one namespace see each other (default: default)' },
]
export const JSON_OPTION: OptionSpec = { name: 'json', help: 'print JSON; fences are strings' }
export const HELP: OptionSpec = { name: 'help', short: 'h', help: 'show this help' }

/** Of commands that look at what others hold. */
export const WATCH: readonly OptionSpec[] = [
  { name: 'watch', short: 'w', help: 'look again and again, until Ctrl-C; not on a terminal: print each change' },
  {
    name: 'interval',
    value: 'DURATION',
    help: 'with --watch: time from one look to the next (default: 1s)',
  },
]
