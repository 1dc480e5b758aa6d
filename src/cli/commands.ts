/**
 * Every command and option, one file each in `specs/`: what the parser knows, what `--help` and the manual page show and
 * what shells complete are this one table.
 */
import { usageError } from './exit.js'
import { nearest } from './nearest.js'
import { shellWord } from './shell.js'
import { COMPLETION } from './specs/completion.js'
import { helpSpec } from './specs/help.js'
import { LS } from './specs/ls.js'
import { REVOKE } from './specs/revoke.js'
import { RUN } from './specs/run.js'
import { SHOW } from './specs/show.js'
import type { CommandSpec } from './specs/spec.js'

export type { CommandSpec, OptionSpec } from './specs/spec.js'

const WORKING: readonly CommandSpec[] = [RUN, LS, SHOW, REVOKE, COMPLETION]

export const COMMANDS: readonly CommandSpec[] = [...WORKING, helpSpec(WORKING.map(({ name }) => name))]

export function commandNamed(word: string): CommandSpec {
  const spec = COMMANDS.find(({ name }) => name === word)
  if (spec) return spec
  const names = COMMANDS.map(({ name }) => name)
  if (word.startsWith('-'))
    throw usageError(
      `options come after the command: holdfast run ${shellWord(word)} …; of its own, holdfast has --help and --version`,
    )
  const near = nearest(word, names)
  const hint = near ? `did you mean ${near}?` : `there are: ${names.join(', ')}; see holdfast --help`
  throw usageError(`there is no command ${shellWord(word)}; ${hint}`)
}
