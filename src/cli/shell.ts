import { printable } from './text/output.js'

/** A word as one would type it in a shell, safe to paste and to show. */
export function shellWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word
  const shown = printable(word)
  return shown === word ? `'${word.replaceAll("'", "'\\''")}'` : `$'${shown.replaceAll("'", "\\'")}'`
}

export const shellLine = (words: readonly string[]): string => words.map(shellWord).join(' ')
