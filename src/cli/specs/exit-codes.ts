import { EXIT } from '../exit.js'

export interface ExitCode {
  readonly code: string
  /** The commands that end with it; nothing for all. */
  readonly of?: readonly string[]
  /** Words in backquotes are code. */
  readonly meaning: string
}

/** What every exit code means: for `--help`, the manual page and docs/cli.md, which a test compares with this. */
export const EXIT_CODES: readonly ExitCode[] = [
  { code: "the command's own", of: ['run'], meaning: 'it ended by itself, and held the lease to its end' },
  {
    code: '128 + n',
    of: ['run', 'ls', 'show', 'revoke'],
    meaning:
      'signal n ended the command of `run` (143: TERM, 137: KILL), or ended a wait, a `--watch` or a question (130: Ctrl-C, 129: the terminal went, 131, 143)',
  },
  { code: `${EXIT.ok}`, of: ['ls', 'show', 'revoke', 'completion', 'help'], meaning: 'done' },
  {
    code: `${EXIT.no}`,
    of: ['show', 'revoke'],
    meaning: 'a definite no: nobody holds the key, or the question of `revoke --force` was not answered with yes',
  },
  { code: `${EXIT.usage}`, meaning: 'bad usage, or not possible on this store' },
  { code: `${EXIT.unavailable}`, of: ['run', 'ls', 'show', 'revoke'], meaning: 'the store is unavailable: no verdict' },
  { code: `${EXIT.software}`, meaning: 'a fault of holdfast; `HOLDFAST_DEBUG=1` prints more' },
  {
    code: `${EXIT.output}`,
    of: ['ls', 'show', 'revoke', 'completion', 'help'],
    meaning:
      'the output could not be written: it is incomplete. A reader that went is no error; a closed stdout (`>&-`) goes unnoticed, since Node puts `/dev/null` in its place',
  },
  {
    code: `${EXIT.held}`,
    of: ['run'],
    meaning: 'held by another, or the store not ready, to the end of the wait (or what `-E` says)',
  },
  { code: `${EXIT.lost}`, of: ['run'], meaning: 'the lease was lost while the command ran' },
  {
    code: `${EXIT.unsafe}`,
    of: ['run', 'ls', 'show', 'revoke'],
    meaning:
      'the store is unsafe: damaged, not a lease file, on a network file system; a Redis that is a replica, or may evict leases',
  },
  {
    code: `${EXIT.notExecutable}, ${EXIT.notFound}`,
    of: ['run'],
    meaning: 'the command is not executable, or not found',
  },
]
