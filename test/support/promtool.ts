/** Metrics as text: what Prometheus says of it, and what it says. */
import { spawnSync } from 'node:child_process'
import { needs } from './sqlite-hosts.js'

export const withPromtool = needs(
  spawnSync('promtool', ['--version']).status === 0,
  "needs promtool, of Debian's package prometheus",
)

/** What `promtool check metrics` complains of; empty when it has nothing to say. */
export function lint(text: string): string {
  const { status, stdout, stderr, error } = spawnSync('promtool', ['check', 'metrics'], {
    input: text,
    encoding: 'utf8',
  })
  if (error) return String(error)
  return status === 0 ? stdout + stderr : `ended with ${status}\n${stdout}${stderr}`
}

export type Scrape = Map<string, number>

/** Series, labels in alphabetical order, and their values. A series that is there twice is refused, as by Prometheus. */
export function scrape(text: string): Scrape {
  const seen: Scrape = new Map()
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    const parts = [...labels.matchAll(/\w+="(?:[^"\\]|\\.)*"/g)].map(([part]) => part).sort()
    const series = parts.length === 0 ? name : `${name}{${parts.join(',')}}`
    if (name === '' || Number.isNaN(Number(value)) || seen.has(series)) throw new Error(`twice, or no sample: ${line}`)
    seen.set(series, Number(value))
  }
  return seen
}

/** The values of one metric by the value of its one label; zeros left out. */
export function byLabel(seen: Scrape, name: string, label: string): Record<string, number> {
  const found = [...seen].flatMap(([series, value]) => {
    const match = series.startsWith(`${name}{`) && new RegExp(`[{,]${label}="([^"]*)"`).exec(series)
    return match && value !== 0 ? [[match[1] ?? '', value] as const] : []
  })
  return Object.fromEntries(found)
}
