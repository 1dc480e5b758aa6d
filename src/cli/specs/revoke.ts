import { type CommandSpec, HELP, JSON_OPTION, STORE } from './spec.js'

export const REVOKE: CommandSpec = {
  name: 'revoke',
  usage: 'holdfast revoke [options] <key>',
  summary: 'ask for <key> back, or free it by force',
  positionals: ['key'],
  required: 1,
  choice: 'key',
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
    'By force: asks first on a terminal, and tells who would be harmed; needs --yes elsewhere.',
  ],
  examples: [
    ['holdfast revoke nightly', 'the holder stops its command and lets go'],
    ['holdfast revoke --force nightly', 'free at once; asks first on a terminal'],
    ['holdfast revoke --force --yes nightly', 'the same in a script'],
  ],
}
