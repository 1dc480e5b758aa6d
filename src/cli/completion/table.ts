/** What the scripts of all shells are made of, out of the table of commands. */
import { COMMANDS, type CommandSpec, type OptionSpec } from '../commands.js'
import type { Choice } from '../specs/spec.js'

export const PROGRAM = 'holdfast'

/** In quotes that all three shells leave alone. */
export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** `--ttl`, `-n` */
export const flagsOf = ({ name, short }: OptionSpec): string[] => [`--${name}`, ...(short ? [`-${short}`] : [])]

/** `key`, `file`, `store`, the words themselves, or `any` for a value of which nothing is known. */
const kindOf = (choice: Choice | undefined): string =>
  typeof choice === 'object' ? choice.join(' ') : (choice ?? 'any')

export interface Kind {
  /** `run --ttl`; for what comes without dashes `run `. */
  readonly of: string
  readonly kind: string
}

/** Everything that takes a value. */
export const kinds = (): Kind[] => COMMANDS.flatMap((spec) => [...ofOptions(spec), ...ofPositional(spec)])

const ofOptions = (spec: CommandSpec): Kind[] =>
  spec.options
    .filter(({ value }) => value !== undefined)
    .flatMap((option) => flagsOf(option).map((flag) => ({ of: `${spec.name} ${flag}`, kind: kindOf(option.choice) })))

const ofPositional = (spec: CommandSpec): Kind[] =>
  spec.positionals.length > 0 ? [{ of: `${spec.name} `, kind: kindOf(spec.choice) }] : []

/** The lines of a `case` in bash and zsh. */
export const kindCases = (): string =>
  kinds()
    .map(({ of, kind }) => `    ${quoted(of)}) kind=${quoted(kind)} ;;`)
    .join('\n')

/** Commands that run another command after `--`. */
export const wrappers = (): string[] => COMMANDS.filter(({ wraps }) => wraps).map(({ name }) => name)
