import { COMMANDS, type CommandSpec, type OptionSpec } from './commands.js'
import { EXIT_CODES } from './specs/exit-codes.js'

const WIDTH = 100

/** `holdfast --help` */
export function overview(): string {
  const rows = COMMANDS.map(({ usage, summary }): [string, string] => [usage.replace('[options] ', ''), summary])
  return [
    'holdfast: leases that stay true when processes are killed, paused or cut off',
    '',
    'Usage:',
    ...columns([...rows, ['holdfast --version', 'the version']]),
    '',
    'Example:',
    '  holdfast run nightly -- ./backup.sh',
    '',
  ].join('\n')
}

/** `holdfast <command> --help` */
export function helpOf(spec: CommandSpec): string {
  return [
    `${spec.usage}`,
    `  ${spec.summary}`,
    '',
    'Options:',
    ...columns(spec.options.map((option): [string, string] => [flags(option), option.help])),
    '',
    ...spec.notes.flatMap((note) => [...wrap(note, WIDTH), '']),
    'Exit codes:',
    ...columns(exitCodesOf(spec).map(({ code, meaning }): [string, string] => [code, plain(meaning)])),
    '',
    'Examples:',
    ...spec.examples.flatMap(([line, what]) => [`  ${line}`, `      ${what}`]),
    '',
  ].join('\n')
}

export const exitCodesOf = ({ name }: CommandSpec) => EXIT_CODES.filter(({ of }) => of?.includes(name) ?? true)

/** Backquotes are for pages that can show code as such. */
const plain = (text: string): string => text.replaceAll('`', '')

function flags({ name, short, value, repeatable }: OptionSpec): string {
  return `${short ? `-${short}, ` : '    '}--${name}${value ? ` ${value}` : ''}${repeatable ? ' …' : ''}`
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const left = Math.max(...rows.map(([each]) => each.length)) + 4
  return rows.flatMap(([name, text]) =>
    wrap(text, Math.max(WIDTH - left, 30)).map(
      (line, index) => `  ${index === 0 ? name.padEnd(left - 2) : ' '.repeat(left - 2)}${line}`,
    ),
  )
}

export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line !== undefined && line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(word)
  }
  return lines
}
