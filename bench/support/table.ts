/** A table as Markdown, in columns, so that it can be read as it is and be put on a page. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(3, ...all.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, column) => (column ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[0] ?? 0))).join(' | ')} |`
  const rule = widths.map((width, column) => (column ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width)))
  return [line(head), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n')
}

/** Three digits that count: `41,300`, `12.4`, `0.153`. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-'
  const size = Math.abs(value)
  if (size >= 100) return Number(value.toPrecision(3)).toLocaleString('en')
  return value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3)
}
