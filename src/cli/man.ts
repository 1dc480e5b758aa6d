/** `holdfast.1`, the manual page, out of the table that `--help` is made of. */
import { COMMANDS, type CommandSpec, type OptionSpec } from './commands.js'
import { wrap } from './help.js'
import { EXIT_CODES, type ExitCode } from './specs/exit-codes.js'
import { FILES, GIVES, READS, type Variable } from './specs/variables.js'

const LINE = 78

/** Text for roff: nothing in it is a request, a dash is one that can be copied, an ellipsis is within reach of all. */
const escaped = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('…', '...')
    .replaceAll('~', '\\(ti')
    .replaceAll('^', '\\(ha')
    .replaceAll("'", '\\(aq')
    .replaceAll('`', '\\(ga')

const bold = (text: string): string => `\\fB${escaped(text)}\\fR`

/** What stands in backquotes is code, and bold. Short lines, of which none is a request. */
const prose = (text: string): string =>
  wrap(
    text
      .split('`')
      .map((part, index) => (index % 2 === 1 ? bold(part) : escaped(part)))
      .join(''),
    LINE,
  )
    .map((line) => line.replace(/^\./, '\\&.'))
    .join('\n')

const section = (title: string, lines: readonly string[]): string[] => [`.SH ${title}`, ...lines]
const item = (head: string, text: string): string[] => ['.TP', head, prose(text)]
const variables = (all: readonly Variable[]): string[] => all.flatMap(({ name, meaning }) => item(bold(name), meaning))

function optionItem({ name, short, value, repeatable, help }: OptionSpec): string[] {
  const flags = [...(short ? [`-${short}`] : []), `--${name}`].map(bold).join(', ')
  const taken = value === undefined ? '' : ` \\fI${escaped(value)}\\fR${repeatable ? ' ...' : ''}`
  return item(flags + taken, help)
}

const commandSection = (spec: CommandSpec): string[] => [
  `.SS ${escaped(spec.name)}`,
  prose(`${spec.summary}.`),
  '.PP',
  bold(spec.usage),
  ...spec.options.flatMap(optionItem),
  ...spec.notes.flatMap((note) => ['.PP', prose(note)]),
]

const examples = (spec: CommandSpec): string[] =>
  spec.examples.flatMap(([line, what]) => ['.TP', bold(line), prose(what)])

const codeItem = ({ code, of, meaning }: ExitCode): string[] =>
  item(bold(code), of ? `${of.map((name) => `\`${name}\``).join(', ')}: ${meaning}` : meaning)

/** `version` of the package. Without a date: the same sources give the same page. */
export const manualPage = (version: string): string =>
  [
    `.TH HOLDFAST 1 "" "holdfast ${version}" "User Commands"`,
    // Words that somebody will copy stay whole.
    '.nh',
    ...section('NAME', [escaped('holdfast - leases that stay true when processes are killed, paused or cut off')]),
    ...section(
      'SYNOPSIS',
      COMMANDS.flatMap(({ usage }, index) => [...(index > 0 ? ['.br'] : []), bold(usage)]),
    ),
    ...section('DESCRIPTION', [
      prose(
        'One holder at a time: `run` waits for its turn, holds the lease on a key while a command runs, and ends the command when the lease is lost. The other commands show who holds what, and take it back.',
      ),
      '.PP',
      prose(
        'Everything before the first `--` is for holdfast, everything after it is the command, untouched. A key that begins with a dash comes after it. Durations have a unit: 500ms, 10s, 5m, 1h, 2d, 1h30m.',
      ),
    ]),
    ...section('COMMANDS', COMMANDS.flatMap(commandSection)),
    ...section('EXIT STATUS', EXIT_CODES.flatMap(codeItem)),
    ...section('ENVIRONMENT', variables(READS)),
    '.PP',
    prose('The command under `run` finds:'),
    ...variables(GIVES),
    ...section('FILES', variables(FILES)),
    ...section('EXAMPLES', COMMANDS.flatMap(examples)),
    '',
  ].join('\n')
