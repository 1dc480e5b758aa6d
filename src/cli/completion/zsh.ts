import { COMMANDS } from '../commands.js'
import { flagsOf, kindCases, PROGRAM, quoted, wrappers } from './table.js'

const commandLines = (): string => COMMANDS.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`).join('\n')

const optionCases = (): string =>
  COMMANDS.map(({ name, options }) => {
    const lines = options.flatMap((option) =>
      flagsOf(option).map((flag) => `      ${quoted(`${flag}:${option.help}`)}`),
    )
    return `    ${name}) options=(\n${lines.join('\n')}\n    ) ;;`
  }).join('\n')

/** For `eval`, after compinit, or as the file `_holdfast` in a folder of `fpath`. */
export const zsh = (): string => `#compdef ${PROGRAM}
# Completion of ${PROGRAM} for zsh. Made by: ${PROGRAM} completion zsh

# What takes a value: COMMAND OPTION (or COMMAND and nothing, for what comes without dashes).
_holdfast_kind() {
  kind=''
  case "$1 $2" in
${kindCases()}
  esac
}

_holdfast_options() {
  local -a options
  case $1 in
${optionCases()}
  esac
  _describe -o -t options option options
}

# From the store that the line names.
_holdfast_keys() {
  local -a asked keys
  local i
  for ((i = 3; i < CURRENT; i++)); do
    case $words[i] in
      --) break ;;
      --store|--namespace) (( i + 1 < CURRENT )) && asked+=("$words[i]" "\${(Q)words[i + 1]}") ;;
      --store=*|--namespace=*) asked+=("\${(Q)words[i]}") ;;
    esac
  done
  keys=("\${(@f)$(_call_program keys \${(q)words[1]} ls --keys \${(q)asked} -- \${(q)\${(Q)PREFIX}} 2>/dev/null </dev/null)}")
  [[ -n $keys ]] && compadd -- "\${(@)keys}"
}

_holdfast_value() {
  case $kind in
    any) _message 'value' ;;
    key) _holdfast_keys ;;
    file) _files ;;
    store)
      if compset -P sqlite:; then _files; else compadd -S '' -- sqlite: redis:// rediss://; fi ;;
    *) compadd -- \${=kind} ;;
  esac
}

_holdfast() {
  local command=$words[2] kind i given=0 first
  if (( CURRENT == 2 )); then
    local -a commands=(
${commandLines()}
    )
    _describe -t commands command commands
    return
  fi
  local end=\${words[(ie)--]}
  for ((i = 3; i < CURRENT && i < end; i++)); do
    if [[ $words[i] != -* ]]; then given=1; continue; fi
    _holdfast_kind "$command" "$words[i]"
    [[ -n $kind ]] && (( i++ ))
  done
  if (( end < CURRENT )); then
    case $command in
      ${wrappers().join('|')})
        first=$((end + 1))
        # A key with a dash comes here, and a second -- after it.
        if (( !given && first < CURRENT )) && [[ $words[first] == -?* ]]; then
          (( first++ ))
          (( first < CURRENT )) && [[ $words[first] == -- ]] && (( first++ ))
        fi
        words=("\${(@)words[first,-1]}")
        (( CURRENT -= first - 1 ))
        _normal ;;
      *)
        _holdfast_kind "$command" ''
        _holdfast_value ;;
    esac
    return
  fi
  _holdfast_kind "$command" "$words[CURRENT-1]"
  if [[ $words[CURRENT-1] == -* && -n $kind ]]; then _holdfast_value
  elif [[ $PREFIX == --*=* ]]; then
    _holdfast_kind "$command" "\${PREFIX%%=*}"
    compset -P '*='
    _holdfast_value
  elif [[ $PREFIX == -* ]]; then _holdfast_options "$command"
  elif (( !given )); then
    _holdfast_kind "$command" ''
    _holdfast_value
  else
    case $command in ${wrappers().join('|')}) compadd -- -- ;; esac
  fi
}

if [[ $funcstack[1] == _holdfast ]]; then _holdfast "$@"; else compdef _holdfast ${PROGRAM}; fi
`
