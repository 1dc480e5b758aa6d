/**
 * Just enough reading of TypeScript for rules about text: which characters are code, which are strings, which are
 * comments; and what a module imports. (The compiler that this project uses offers no interface for that.)
 */

export interface SourceText {
  /** The text with comments and the insides of strings blanked out; same length, same lines. */
  readonly code: string
  /** The text with comments blanked out; strings stay. */
  readonly withStrings: string
}

/** After one of these a slash begins a regular expression, else it divides. */
const BEFORE_REGEXP = /(^|[=(,:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|do|else|void|delete|await|yield))\s*$/

const blank = (text: string) => text.replace(/[^\n]/g, ' ')

export function readSource(text: string): SourceText {
  let code = ''
  let withStrings = ''
  let at = 0
  /** For each template literal that we are in the `${}` of: how many braces are open there. */
  const templates: number[] = []

  const comment = (length: number) => {
    const part = text.slice(at, at + length)
    code += blank(part)
    withStrings += blank(part)
    at += length
  }
  const literal = (length: number) => {
    const part = text.slice(at, at + length)
    code += part.length < 2 ? part : part[0] + blank(part.slice(1, -1)) + part.slice(-1)
    withStrings += part
    at += length
  }
  const plain = (length: number) => {
    code += text.slice(at, at + length)
    withStrings += text.slice(at, at + length)
    at += length
  }
  /** From a backquote, or from the brace that ends a `${}`, to the next `${` or the closing backquote. */
  const template = () => {
    const part = /^[`}](?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{|$)/.exec(text.slice(at))?.[0] ?? text.slice(at)
    if (part.endsWith('${')) templates.push(0)
    literal(part.length)
  }

  while (at < text.length) {
    const rest = text.slice(at, at + 2)
    const char = text[at] ?? ''
    if (rest === '//') comment(endOf(text, '\n', at) - at)
    else if (rest === '/*') comment(endOf(text, '*/', at + 2) - at)
    else if (char === "'" || char === '"') literal(stringLength(text, at))
    else if (char === '`') template()
    else if (char === '/' && BEFORE_REGEXP.test(code.slice(-40))) literal(regexpLength(text, at))
    else if (char === '}' && templates.at(-1) === 0) {
      templates.pop()
      template()
    } else {
      const open = templates.length - 1
      if (open >= 0 && char === '{') templates[open] = (templates[open] ?? 0) + 1
      if (open >= 0 && char === '}') templates[open] = (templates[open] ?? 0) - 1
      plain(1)
    }
  }
  return { code, withStrings }
}

function endOf(text: string, mark: string, from: number): number {
  const start = text.indexOf(mark, from)
  return start < 0 ? text.length : start + mark.length
}

function stringLength(text: string, at: number): number {
  const quote = text[at]
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === quote || text[i] === '\n') return i + 1 - at
  }
  return text.length - at
}

function regexpLength(text: string, at: number): number {
  let inClass = false
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === '[') inClass = true
    else if (text[i] === ']') inClass = false
    else if (text[i] === '\n' || (text[i] === '/' && !inClass)) return i + 1 - at
  }
  return text.length - at
}

export interface Import {
  /** What stands between the quotes; null where a dynamic import computes it. */
  readonly specifier: string | null
  /** `type`: gone after compilation. `dynamic`: `import(…)` or `require(…)` while running. */
  readonly kind: 'value' | 'type' | 'dynamic'
  readonly line: number
}

const STATIC =
  /\b(import|export)\b(\s+type\b)?(?:(?!\b(?:import|export)\b)[^'"`;()=])*?(?:\bfrom\s*|(?<=import)\s*)(['"])/g
const CALL = /\b(import|require)\s*\(\s*(['"`]?)/g

/** Every import and re-export of a module, `import('…')` and `require('…')` included. */
export function importsOf(text: string): readonly Import[] {
  const { code, withStrings } = readSource(text)
  const line = (at: number) => lineAt(code, at)
  const quoted = (quoteAt: number) => {
    const quote = withStrings[quoteAt] ?? ''
    return withStrings.slice(quoteAt + 1, withStrings.indexOf(quote, quoteAt + 1))
  }
  const found: Import[] = []
  for (const match of code.matchAll(STATIC)) {
    const end = match.index + match[0].length - 1
    found.push({ specifier: quoted(end), kind: match[2] ? 'type' : 'value', line: line(end) })
  }
  for (const match of code.matchAll(CALL)) {
    const end = match.index + match[0].length - 1
    const kind = isTypeQuery(code, match.index) ? 'type' : 'dynamic'
    found.push({ specifier: match[2] ? quoted(end) : null, kind, line: line(end) })
  }
  return found
}

/** `let x: import('./y.js').Y` is a type; `await import('./y.js')` is not. */
function isTypeQuery(code: string, at: number): boolean {
  return /(?:[:<|&]|\btypeof|\bextends)\s*$/.test(code.slice(Math.max(0, at - 20), at))
}

/** The line of an offset, counted from 1. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}
