import { systemEnvironment } from '../environment.js'
import type { Holding } from '../store.js'
import { formatDuration } from './duration.js'
import { printable } from './output.js'
import { localTime } from './wall-time.js'

/** Columns of equal width; whatever a cell holds, a row is one line. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [heads, ...rows.map((row) => row.map(printable))]
  const widths = heads.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  return all
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

const span = (ms: number | undefined): string => (ms === undefined ? '-' : formatDuration(ms))

export const HOLDING_HEADS = ['KEY', 'FENCE', 'STATE', 'HOLDER', 'HELD FOR', 'TTL LEFT', 'WAITING']

export function holdingRow(holding: Holding): string[] {
  const { key, fence, state, label, heldForMs, remainingMs, waiters } = holding
  const waiting = waiters === undefined ? '-' : String(waiters.length)
  return [key, String(fence), state, label ?? '-', span(heldForMs), span(remainingMs), waiting]
}

/** Named one by one, so that nothing else a store may carry ever leaves; the fence as text, JSON has no such integers. */
export function holdingJson(holding: Holding): Record<string, unknown> {
  const { namespace, key, fence, state, label, heldForMs, remainingMs, waiters } = holding
  return {
    namespace,
    key,
    fence: String(fence),
    state,
    label,
    heldForMs: whole(heldForMs),
    remainingMs: whole(remainingMs),
    waiters,
  }
}

const whole = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : Math.round(ms))

/** `"k" is held by web-1:4711 for 12s (fence 1790…), since 05:06:07, free in 8.2s unless it is renewed` */
export function holdingLine(holding: Holding, wallMs = systemEnvironment().clock.wall()): string {
  const { key, fence, state, label, heldForMs, remainingMs } = holding
  const by = label === undefined ? '' : ` by ${label}`
  const name = JSON.stringify(key)
  const left = remainingMs === undefined ? null : formatDuration(remainingMs)
  if (state === 'kept') {
    const who = label === undefined ? 'it was released' : `${label} released it`
    const until = left === null ? '' : `, free in ${left}`
    return `${name} is still taken: ${who}, but it is kept for a while (--min-hold or --lock-delay; fence ${fence})${until}`
  }
  const span = heldForMs === undefined ? '' : ` for ${formatDuration(heldForMs)}`
  const since = heldForMs === undefined ? '' : `, since ${localTime(wallMs - heldForMs, wallMs)}`
  const asked = state === 'revoked' ? ', asked back' : ''
  const until = left === null ? '' : `, free in ${left}${asked ? ' at the latest' : ' unless it is renewed'}`
  return `${name} is held${by}${span} (fence ${fence})${since}${asked}${until}`
}
