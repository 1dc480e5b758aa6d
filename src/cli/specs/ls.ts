import { type CommandSpec, HELP, JSON_OPTION, STORE, WATCH } from './spec.js'

export const LS: CommandSpec = {
  name: 'ls',
  usage: 'holdfast ls [options] [prefix]',
  summary: 'list what is held',
  positionals: ['prefix'],
  required: 0,
  choice: 'key',
  wraps: false,
  options: [...WATCH, { name: 'keys', help: 'print the keys alone, one a line' }, JSON_OPTION, ...STORE, HELP],
  notes: [
    'For people and dashboards, never for decisions: the answer is old when it arrives. A table fits the terminal that it is shown on: what is cut ends up as …, and columns may be left out. In a pipe or a file nothing is cut.',
  ],
  examples: [
    ['holdfast ls', 'everything in the default namespace'],
    ['holdfast ls job:', 'keys that begin with job:'],
    ['holdfast ls --json', 'one JSON array'],
    ['holdfast ls --watch --interval 5s', 'a table that stays, until Ctrl-C'],
    ['holdfast ls --json --watch', 'in a pipe: one JSON array on one line for each change'],
  ],
}
