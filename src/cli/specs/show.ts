import { type CommandSpec, HELP, JSON_OPTION, STORE, WATCH } from './spec.js'

export const SHOW: CommandSpec = {
  name: 'show',
  usage: 'holdfast show [options] <key>',
  summary: 'show who holds <key>; exit 1 when it is free',
  positionals: ['key'],
  required: 1,
  choice: 'key',
  wraps: false,
  options: [...WATCH, JSON_OPTION, ...STORE, HELP],
  notes: ['For people and dashboards, never for decisions: the answer is old when it arrives.'],
  examples: [
    ['holdfast show nightly', 'who holds it, on which host, since when, and what to do next'],
    ['holdfast show --json nightly', 'one JSON object, or null when the key is free'],
    ['holdfast show --watch nightly', 'stays, until Ctrl-C'],
  ],
}
