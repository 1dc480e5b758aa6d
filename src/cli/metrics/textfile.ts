/** The text format of Prometheus, as far as files for node_exporter's textfile collector need it. */

/** A series (a name with its labels, as it is written) and its value. */
export type Values = ReadonlyMap<string, number>

export interface Family {
  readonly metric: { readonly name: string; readonly type: string; readonly help: string }
  readonly values: Values
}

export type Labels = Readonly<Record<string, string>>

const ESCAPES: Record<string, string> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }

export function seriesOf(name: string, labels: Labels): string {
  const parts = Object.entries(labels).map(
    ([label, value]) => `${label}="${value.replace(/[\\"\n]/g, (each) => ESCAPES[each] ?? each)}"`,
  )
  return `${name}{${parts.join(',')}}`
}

export function textOf(families: readonly Family[]): string {
  const lines = families.flatMap(({ metric: { name, type, help }, values }) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...[...values].map(([series, value]) => `${series} ${value}`),
  ])
  return `${lines.join('\n')}\n`
}

/** What such a file says; `null` when a line of it is none of ours, or its end is missing. */
export function parse(text: string): Values | null {
  if (!text.endsWith('\n')) return null
  const values = new Map<string, number>()
  for (const line of text.slice(0, -1).split('\n')) {
    if (line.startsWith('#')) continue
    const [, series, value] = /^(\w+\{.*\}) ([0-9.e+-]+)$/.exec(line) ?? []
    if (series === undefined || value === undefined || !Number.isFinite(Number(value))) return null
    values.set(series, Number(value))
  }
  return values
}
