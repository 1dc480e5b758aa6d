import { COMMANDS } from '../commands.js'
import { flagsOf, kindCases, PROGRAM, quoted, wrappers } from './table.js'

const optionCases = (): string =>
  COMMANDS.map(({ name, options }) => `    ${name}) options=${quoted(options.flatMap(flagsOf).join(' '))} ;;`).join(
    '\n',
  )

/** Needs nothing but bash; uses the package bash-completion for the command after `--` where it is loaded. */
export const bash = (): string => `# Completion of ${PROGRAM} for bash. Made by: ${PROGRAM} completion bash

# What takes a value: COMMAND OPTION (or COMMAND and nothing, for what comes without dashes).
_holdfast_kind() {
  kind=''
  case "$1 $2" in
${kindCases()}
  esac
}

_holdfast_options() {
  options=''
  case $1 in
${optionCases()}
  esac
}

# Offers those of the lines on stdin that begin as the word does. What stands before the last : = or @ of it is there
# already: readline completes from there on.
_holdfast_offer() {
  local typed=\${cur//[\\\\\\"\\']/} there=\${cur%"\${cur##*[:=@]}"} each
  while IFS= read -r each; do
    [[ $each == "$typed"* ]] || continue
    [[ $1 == quoted ]] && printf -v each %q "$each"
    COMPREPLY+=("\${each#"$there"}")
  done
}

_holdfast_words() {
  _holdfast_offer plain < <(printf '%s\\n' "$@")
}

_holdfast_files() {
  compopt -o filenames 2>/dev/null
  local scheme=$1 path=\${cur#"$1"}
  _holdfast_offer plain < <(compgen -f -- "\${path//\\\\/}" | while IFS= read -r each; do printf '%s\\n' "$scheme$each"; done)
}

# From the store that the line names.
_holdfast_keys() {
  local typed=\${cur//[\\\\\\"\\']/} asked=() i
  for ((i = 2; i < \${#words[@]} - 1; i++)); do
    case \${words[i]} in
      --) break ;;
      --store | --namespace) ((i + 1 < \${#words[@]} - 1)) && asked+=("\${words[i]}" "\${words[i + 1]//[\\\\\\"\\']/}") ;;
      --store=* | --namespace=*) asked+=("\${words[i]//[\\\\\\"\\']/}") ;;
    esac
  done
  _holdfast_offer quoted < <("\${words[0]}" ls --keys "\${asked[@]}" -- "$typed" 2>/dev/null </dev/null)
}

_holdfast_value() {
  case $kind in
    any) ;;
    key) _holdfast_keys ;;
    file) _holdfast_files '' ;;
    store)
      if [[ $cur == sqlite:* ]]; then _holdfast_files sqlite:
      else
        compopt -o nospace 2>/dev/null
        _holdfast_words sqlite: redis:// rediss://
      fi ;;
    *) _holdfast_words $kind ;;
  esac
}

# The command that begins at COMP_WORDS[$1], as the shell itself would complete it.
_holdfast_command() {
  if declare -F _command_offset >/dev/null; then
    _command_offset "$1"
    return
  fi
  if ((COMP_CWORD == $1)); then
    _holdfast_offer plain < <(compgen -c -- "$cur"; [[ $cur == */* ]] && compgen -f -- "$cur")
    [[ $cur == */* ]] && compopt -o filenames 2>/dev/null
    return
  fi
  local name=\${COMP_WORDS[$1]} function
  function=$(complete -p -- "\${name##*/}" 2>/dev/null)
  compopt -o bashdefault -o default 2>/dev/null
  [[ $function == *' -F '* ]] || return
  function=\${function#* -F }
  local line=\${COMP_LINE#* -- }
  COMP_POINT=$((COMP_POINT - \${#COMP_LINE} + \${#line})) COMP_LINE=$line
  COMP_WORDS=("\${COMP_WORDS[@]:$1}") COMP_CWORD=$((COMP_CWORD - $1))
  "\${function%% *}" "$name" "$cur" "\${COMP_WORDS[COMP_CWORD - 1]}"
}

_holdfast() {
  local words=() cur line=\${COMP_LINE:0:COMP_POINT} i word joined kind options end=0 raw=0 given=0
  COMPREPLY=()
  # Readline takes words apart at : and =, of which keys and URLs are full: what stood together is one word again.
  line=\${line#*"\${COMP_WORDS[0]}"}
  words=("\${COMP_WORDS[0]}")
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]} joined=1
    [[ $line == [[:space:]]* ]] && joined=0
    line=\${line#"\${line%%[![:space:]]*}"}
    if ((i == COMP_CWORD)); then word=$line; else line=\${line#"$word"}; fi
    if ((joined)); then words[\${#words[@]} - 1]+=$word; else words+=("$word"); fi
    [[ $word == -- && $raw == 0 && $joined == 0 ]] && ((i < COMP_CWORD)) && raw=$i end=$((\${#words[@]} - 1))
  done
  local count=\${#words[@]}
  cur=\${words[count - 1]}
  local command=\${words[1]} previous=\${words[count - 2]}
  if ((count == 2)); then
    _holdfast_words ${COMMANDS.map(({ name }) => name).join(' ')} --help --version
    return
  fi
  for ((i = 2; i < count - 1 && (end == 0 || i < end); i++)); do
    if [[ \${words[i]} != -* ]]; then given=1; continue; fi
    _holdfast_kind "$command" "\${words[i]}"
    [[ -n $kind ]] && ((i++))
  done
  if ((end > 0)); then
    case " ${wrappers().join(' ')} " in
      *" $command "*)
        ((raw++))
        # A key with a dash comes here, and a second -- after it.
        if ((!given)) && [[ \${COMP_WORDS[raw]} == -?* && raw -lt COMP_CWORD ]]; then
          ((raw++))
          [[ \${COMP_WORDS[raw]} == -- ]] && ((raw < COMP_CWORD)) && ((raw++))
        fi
        _holdfast_command "$raw" ;;
      *)
        _holdfast_kind "$command" ''
        _holdfast_value ;;
    esac
    return
  fi
  _holdfast_kind "$command" "$previous"
  if [[ $previous == -* && -n $kind ]]; then _holdfast_value
  elif [[ $cur == --*=* ]]; then
    _holdfast_kind "$command" "\${cur%%=*}"
    local option=\${cur%%=*}=
    cur=\${cur#*=}
    _holdfast_value
  elif [[ $cur == -* ]]; then
    _holdfast_options "$command"
    _holdfast_words $options --
  elif ((!given)); then
    _holdfast_kind "$command" ''
    _holdfast_value
  else
    case " ${wrappers().join(' ')} " in *" $command "*) _holdfast_words -- ;; esac
  fi
}

complete -F _holdfast ${PROGRAM}
`
