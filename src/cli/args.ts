import { parseArgs } from 'node:util'
import type { CommandSpec, OptionSpec } from './commands.js'
import { usageError } from './exit.js'
import { nearest } from './nearest.js'
import { redactUrl } from './redact.js'
import { shellLine } from './shell.js'

/** What was asked of one command. */
export interface Parsed {
  readonly positionals: readonly string[]
  /** The command to run and its arguments, exactly as given after `--`. */
  readonly command: readonly string[]
  /** Values by option name; a switch has one empty value. */
  readonly options: ReadonlyMap<string, readonly string[]>
}

export const has = (parsed: Parsed, name: string): boolean => parsed.options.has(name)
export const optionOf = (parsed: Parsed, name: string): string | undefined => parsed.options.get(name)?.[0]

/**
 * Everything before the first `--` is ours, everything after it is the command's, untouched (B214). Where no key comes
 * before it, the key comes after it, with another `--` before the command: `run -- -k -- command`.
 */
export function parse(spec: CommandSpec, argv: readonly string[]): Parsed {
  const end = argv.indexOf('--')
  const ours = end === -1 ? argv : argv.slice(0, end)
  const behind = end === -1 ? [] : argv.slice(end + 1)
  const { tokens } = parseArgs({
    args: [...ours],
    options: optionTable(spec),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const options = new Map<string, string[]>()
  const positionals: string[] = []
  let unknown: string | null = null
  let swallowed: Swallowed | null = null
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue
    if (token.kind === 'positional') {
      // With the command's own options behind it, any complaint about those would be beside the point.
      if (spec.wraps && end === -1 && positionals.length === 1) throw missingDashes(spec, ours, token.index)
      positionals.push(token.value)
      continue
    }
    const option = spec.options.find((each) => each.name === token.name)
    if (!option) unknown ??= token.rawName
    else {
      collect(options, option, token.rawName, token.value, token.inlineValue ?? false)
      if (token.value !== undefined && !token.inlineValue) swallowed = { raw: token.rawName, value: token.value }
    }
  }
  if (unknown !== null) throw unknownOption(spec, unknown)
  if (!spec.wraps) positionals.push(...behind)
  const command = spec.wraps ? commandOf(positionals, behind) : []
  if (!options.has('help')) checkPositionals(spec, positionals, command, swallowed)
  return { positionals, command, options }
}

/** The last option that took the word after it as its value. */
interface Swallowed {
  readonly raw: string
  readonly value: string
}

/**
 * The command, after the key has been taken from its front where it is there. Only a key with a dash may do without the
 * second `--`: in `run -- make deploy` a key was forgotten, and `deploy` is no command that anybody meant.
 */
function commandOf(positionals: string[], behind: readonly string[]): readonly string[] {
  const [key, next] = behind
  if (positionals.length > 0 || key === undefined) return behind
  if (next !== '--' && !key.startsWith('-')) return behind
  positionals.push(key)
  return behind.slice(next === '--' ? 2 : 1)
}

const optionTable = (spec: CommandSpec) =>
  Object.fromEntries(
    spec.options.map(({ name, short, value }) => [
      name,
      {
        type: value === undefined ? ('boolean' as const) : ('string' as const),
        multiple: true,
        ...(short && { short }),
      },
    ]),
  )

function collect(
  options: Map<string, string[]>,
  spec: OptionSpec,
  raw: string,
  value: string | undefined,
  inline: boolean,
): void {
  if (spec.value === undefined) {
    if (value !== undefined) throw usageError(`${raw} takes no value`)
    options.set(spec.name, [''])
    return
  }
  if (value === undefined) throw usageError(`${raw} needs a value: ${raw} ${spec.value}`)
  // `--ttl --quiet` is a forgotten value far more often than a value with a dash.
  if (!inline && value.startsWith('-')) {
    throw usageError(
      `${raw} needs a value: ${raw} ${spec.value} (one that begins with a dash: --${spec.name}=${value})`,
    )
  }
  const before = options.get(spec.name) ?? []
  if (before.length > 0 && !spec.repeatable) throw usageError(`${raw} was given twice; give it once`)
  options.set(spec.name, [...before, value])
}

function checkPositionals(
  spec: CommandSpec,
  positionals: readonly string[],
  command: readonly string[],
  swallowed: Swallowed | null,
): void {
  const missing = spec.positionals[positionals.length]
  if (missing !== undefined && positionals.length < spec.required) {
    const why = swallowed && ` (${swallowed.raw} took ${shellLine([redactUrl(swallowed.value)])} as its value)`
    throw usageError(`${spec.name} needs a ${missing}${why ?? ''}: ${spec.usage}`)
  }
  const extra = positionals[spec.positionals.length]
  if (extra !== undefined) {
    const why = spec.wraps ? '' : ' (it runs no command)'
    throw usageError(`${spec.name} does not take ${shellLine([redactUrl(extra)])}${why}: ${spec.usage}`)
  }
  if (spec.wraps && command.length === 0)
    throw usageError(`${spec.name} needs -- and a command after the key: ${spec.usage}`)
}

function missingDashes(spec: CommandSpec, argv: readonly string[], index: number): Error {
  const words = ['holdfast', spec.name, ...argv.slice(0, index), '--', ...argv.slice(index)].map(redactUrl)
  return usageError(`the command comes after --: ${shellLine(words)}`)
}

function unknownOption(spec: CommandSpec, raw: string): Error {
  const names = spec.options.flatMap(({ name, short }) => (short ? [`--${name}`, `-${short}`] : [`--${name}`]))
  const near = raw.startsWith('--') ? nearest(raw, names) : null
  const hint = near
    ? `did you mean ${near}?`
    : `see holdfast ${spec.name} --help (a ${spec.positionals[0]} that begins with a dash comes after --)`
  return usageError(`${spec.name} knows no option ${shellLine([raw])}; ${hint}`)
}
