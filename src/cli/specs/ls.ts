import { type CommandSpec, HELP, JSON_OPTION, STORE } from './spec.js'

export const LS: CommandSpec = {
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
