/** Reads the pages of the documentation: their code blocks with the marks before them, their headings and links. */

export interface CodeBlock {
  readonly page: string
  readonly line: number
  readonly language: string
  readonly code: string
  /** `<!-- not run: it installs -->` before the block gives `not run` → `it installs`. */
  readonly marks: ReadonlyMap<string, string>
}

const FENCE = /^( *)```([^\n]*)\n([\s\S]*?)^\1```[ \t]*$/gm
const MARKS_BEFORE = /(?:<!--(?:(?!-->)[\s\S])*-->\s*)+$/
const MARK = /<!--\s*([a-z][a-z ]*[a-z]):\s*((?:(?!-->)[\s\S])*?)\s*-->/g

export function codeBlocks(page: string, text: string): CodeBlock[] {
  return [...text.matchAll(FENCE)].map((match) => {
    const [, indent = '', language = '', body = ''] = match
    const before = text.slice(0, match.index)
    const comments = MARKS_BEFORE.exec(before)?.[0] ?? ''
    const marks = new Map([...comments.matchAll(MARK)].map(([, name = '', value = '']) => [name, value]))
    const code = body.replace(new RegExp(`^${indent}`, 'gm'), '')
    return { page, line: before.split('\n').length, language: language.trim(), code, marks }
  })
}

const withoutCode = (text: string) => text.replace(FENCE, '').replace(/`[^`\n]*`/g, '')

/** The targets of all links: `[text](target)`, `![picture](target)`, `[name]: target`. */
export function links(text: string): string[] {
  const plain = withoutCode(text)
  const inline = [...plain.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)]
  const references = [...plain.matchAll(/^\s*\[[^\]]+\]:\s*(\S+)/gm)]
  return [...inline, ...references].map(([, target = '']) => target)
}

/** The names that a link can jump to, made from the headings as the usual viewers make them. */
export function anchors(text: string): Set<string> {
  const found = new Set<string>()
  for (const [, heading = ''] of text.replace(FENCE, '').matchAll(/^#{1,6} +(.*?)\s*$/gm)) {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-')
    let unique = slug
    for (let n = 1; found.has(unique); n++) unique = `${slug}-${n}`
    found.add(unique)
  }
  return found
}
