import { COMMANDS, type CommandSpec, type OptionSpec } from '../commands.js'
import type { Choice } from '../specs/spec.js'
import { PROGRAM, wrappers } from './table.js'

/** Fish knows two escapes within single quotes. */
const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

/** What is offered in place of files, which fish offers by itself where nothing says otherwise. */
function offer(choice: Choice | undefined): string {
  if (choice === 'file') return '-F'
  if (choice === 'key') return "-f -a '(__holdfast_keys)'"
  if (choice === 'store') return "-f -a '(__holdfast_stores)'"
  return choice === undefined ? '-f' : `-f -a ${quoted(choice.join(' '))}`
}

function optionLine({ name }: CommandSpec, option: OptionSpec): string {
  const { short, value, choice, help } = option
  const taken = value === undefined ? '-f' : `-r ${offer(choice)}`
  return `complete -c ${PROGRAM} -n '__holdfast_in ${name}' -l ${option.name}${short ? ` -s ${short}` : ''} ${taken} -d ${quoted(help)}`
}

const linesOf = (spec: CommandSpec): string[] => [
  `complete -c ${PROGRAM} -n __holdfast_first -f -a ${spec.name} -d ${quoted(spec.summary)}`,
  ...spec.options.map((option) => optionLine(spec, option)),
  ...(spec.positionals.length > 0
    ? [`complete -c ${PROGRAM} -n '__holdfast_wants ${spec.name}' ${offer(spec.choice)}`]
    : []),
]

/** The options that are followed by a value, so that it is not taken for a key. */
const taking = (): string =>
  [
    ...new Set(
      COMMANDS.flatMap(({ options }) =>
        options.flatMap(({ name, short, value }) => (value ? [`--${name}`, ...(short ? [`-${short}`] : [])] : [])),
      ),
    ),
  ].join(' ')

export const fish = (): string => `# Completion of ${PROGRAM} for fish. Made by: ${PROGRAM} completion fish

function __holdfast_first
    test (count (commandline -opc)) -eq 1
end

# Is this the command, and are we still before --?
function __holdfast_in
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]; and not contains -- -- $words
end

# Is what comes without dashes still missing?
function __holdfast_wants
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]; or return 1
    set -l skip 0
    for word in $words[3..]
        if test $skip = 1
            set skip 0
        else if test $word = --
            not contains -- $argv[1] ${wrappers().join(' ')}
            return
        else if contains -- $word ${taking()}
            set skip 1
        else if not string match -q -- '-*' $word
            return 1
        end
    end
    true
end

# Has a command that runs another one got its key?
function __holdfast_has_key
    __holdfast_in $argv[1]; and not __holdfast_wants $argv[1]
end

# From the store that the line names.
function __holdfast_keys
    set -l words (commandline -opc)
    set -l asked
    for i in (seq 3 (count $words))
        switch $words[$i]
            case --
                break
            case --store --namespace
                test $i -lt (count $words); and set -a asked $words[$i] $words[(math $i + 1)]
            case '--store=*' '--namespace=*'
                set -a asked $words[$i]
        end
    end
    $words[1] ls --keys $asked 2>/dev/null </dev/null
end

function __holdfast_stores
    set -l typed (string replace -r -- '^--store=' '' (commandline -ct))
    if string match -q 'sqlite:*' -- $typed
        for path in (complete -C "'' "(string replace -- sqlite: '' $typed))
            echo sqlite:$path
        end
    else
        printf '%s\\n' sqlite: redis:// rediss://
    end
end

function __holdfast_after
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] ${wrappers().join(' ')}; and contains -- -- $words
end

# The command after --, as the shell itself would complete it.
function __holdfast_command
    set -l words (commandline -opc)
    set -l first (math (contains -i -- -- $words) + 1)
    # A key with a dash comes here, and a second -- after it.
    set -l before $words[1..(math $first - 1)]
    if test $first -le (count $words); and string match -q -- '-?*' $words[$first]; and test (count $before) -eq 3
        set first (math $first + 1)
        test $first -le (count $words); and test $words[$first] = --; and set first (math $first + 1)
    end
    set -l line
    test $first -le (count $words); and set line (string escape -- $words[$first..])
    set -a line (commandline -ct)
    complete -C "$line"
end

complete -c ${PROGRAM} -f
complete -c ${PROGRAM} -n __holdfast_first -l help -s h -d 'show the commands'
complete -c ${PROGRAM} -n __holdfast_first -l version -d 'show the version'
${COMMANDS.flatMap(linesOf).join('\n')}
${wrappers()
  .map((name) => `complete -c ${PROGRAM} -n '__holdfast_has_key ${name}' -f -a -- -d 'the command comes next'`)
  .join('\n')}
complete -c ${PROGRAM} -n __holdfast_after -f -a '(__holdfast_command)'
`
