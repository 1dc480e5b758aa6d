/** Words in backquotes are code. */
export interface Variable {
  readonly name: string
  readonly meaning: string
}

/** What holdfast reads from its environment. */
export const READS: readonly Variable[] = [
  {
    name: 'HOLDFAST_STORE',
    meaning: 'the URL of the store, where no `--store` says it; the place for a URL with a password',
  },
  {
    name: 'XDG_STATE_HOME',
    meaning: 'where neither names a store: the folder in which `holdfast/leases.db` is made; else `~/.local/state`',
  },
  { name: 'HOLDFAST_DEBUG', meaning: '`1`: print the stack of an error, and warnings of Node' },
]

/** What the command under `run` finds in its own. */
export const GIVES: readonly Variable[] = [
  { name: 'HOLDFAST_KEY', meaning: 'the key that is held' },
  {
    name: 'HOLDFAST_FENCE',
    meaning:
      'a number greater than that of every earlier holder of the key, for resources that can refuse an older one',
  },
  {
    name: 'HOLDFAST_STORE',
    meaning:
      'so that a `holdfast` inside the command asks the same store; with `--no-inherit-store` it is `refuse:`, and a nested call must name its store',
  },
  { name: 'HOLDFAST_TREE', meaning: 'by which holdfast finds what the command started' },
]

export const FILES: readonly Variable[] = [
  { name: '$XDG_STATE_HOME/holdfast/leases.db', meaning: 'the leases, where nothing names another store' },
  { name: '~/.local/state/holdfast/leases.db', meaning: 'the same, where `XDG_STATE_HOME` is not set' },
]
