import { type CommandSpec, HELP as HELP_OPTION } from './spec.js'

/** `names` are those of the other commands. */
export const helpSpec = (names: readonly string[]): CommandSpec => ({
  name: 'help',
  usage: 'holdfast help [command]',
  summary: 'options, exit codes and examples of a command',
  positionals: ['command'],
  required: 0,
  choice: names,
  wraps: false,
  options: [HELP_OPTION],
  notes: ['The same as holdfast <command> --help. Everything in one page: man holdfast.'],
  examples: [
    ['holdfast help', 'the commands'],
    ['holdfast help run', 'all about run'],
  ],
})
