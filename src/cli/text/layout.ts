import { printable } from './output.js'
import { beginning, cells, padded, shortened } from './width.js'

export interface Column {
  readonly head: string
  /** May be cut in its middle where the terminal is too narrow. */
  readonly flexible?: boolean
  /** Left out where it still is: the lowest first. */
  readonly leaveOut?: number
}

/** What a flexible column keeps at least, if it needs it, as long as another can be left out. */
const LEAST = 20
const GAP = '  '

/**
 * Columns of equal width; whatever a cell holds, a row is one line. Within `width` cells where one is given (a
 * terminal), complete where none is (a pipe).
 */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number | null = null,
): string {
  const all = [columns.map(({ head }) => head), ...rows.map((row) => row.map(printable))]
  const natural = columns.map((_, at) => Math.max(...all.map((row) => cells(row[at] ?? ''))))
  const { shown, widths } =
    width === null ? { shown: columns.map((_, at) => at), widths: natural } : narrowed(columns, natural, width)
  const lines = all.map((row) =>
    shown
      .map((at) => padded(shortened(row[at] ?? '', widths[at] ?? 0), widths[at] ?? 0))
      .join(GAP)
      .trimEnd(),
  )
  return lines.map((line) => `${width === null ? line : beginning(line, width)}\n`).join('')
}

function narrowed(columns: readonly Column[], natural: readonly number[], width: number) {
  const least = columns.map(({ flexible }, at) => (flexible ? Math.min(natural[at] ?? 0, LEAST) : (natural[at] ?? 0)))
  let shown = columns.map((_, at) => at)
  const total = (of: readonly number[]) => shown.reduce((sum, at) => sum + (of[at] ?? 0) + GAP.length, -GAP.length)
  const order = (at: number) => columns[at]?.leaveOut ?? Number.POSITIVE_INFINITY
  while (total(least) > width) {
    const next = Math.min(...shown.map(order))
    if (next === Number.POSITIVE_INFINITY) break
    shown = shown.filter((at) => order(at) !== next)
  }
  const widths = [...natural]
  const flexible = shown.filter((at) => columns[at]?.flexible)
  // From whichever is widest, one cell at a time: short ones stay whole.
  while (total(widths) > width) {
    const widest = flexible.reduce((a, b) => ((widths[b] ?? 0) > (widths[a] ?? 0) ? b : a), flexible[0] ?? 0)
    if ((widths[widest] ?? 0) <= 3) break
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return { shown, widths }
}
