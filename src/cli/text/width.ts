/** How many cells of a terminal a text takes, and cutting to that measure. */

// Combining marks and format characters (joiners, variation selectors) take none.
const ZERO = /^[\p{Mn}\p{Me}\p{Cf}]$/u
/** East Asian wide and full-width characters, and pictographs. */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f900, 0x1faff],
  [0x20000, 0x3fffd],
]

function cellsOf(character: string): number {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x300) return 1
  if (ZERO.test(character)) return 0
  return WIDE.some(([from, to]) => code >= from && code <= to) ? 2 : 1
}

export const cells = (text: string): number => [...text].reduce((sum, character) => sum + cellsOf(character), 0)

export const padded = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - cells(text)))

/** As much of the beginning as fits. */
export function beginning(text: string, width: number): string {
  let taken = 0
  let result = ''
  for (const character of text) {
    taken += cellsOf(character)
    if (taken > width) break
    result += character
  }
  return result
}

/** Without its middle where it is too long: the ends of keys and labels tell more (a tenant, a process). */
export function shortened(text: string, width: number): string {
  if (cells(text) <= width) return text
  const half = Math.ceil((width - 1) / 2)
  const end = [...beginning([...text].reverse().join(''), width - 1 - half)].reverse().join('')
  return `${beginning(text, half)}…${end}`
}
