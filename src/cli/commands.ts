/**
 * Every command and option, one file each in `specs/`: what the parser knows, what `--help` shows and what shells complete
 * are this one table.
 */
import { LS } from './specs/ls.js'
import { REVOKE } from './specs/revoke.js'
import { RUN } from './specs/run.js'
import { SHOW } from './specs/show.js'
import type { CommandSpec } from './specs/spec.js'

export type { CommandSpec, OptionSpec } from './specs/spec.js'

export const COMMANDS: readonly CommandSpec[] = [RUN, LS, SHOW, REVOKE]
