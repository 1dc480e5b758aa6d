import { systemEnvironment } from '../../environment.js'
import type { Holding } from '../../store.js'
import { formatDuration } from './duration.js'
import { localTime } from './wall-time.js'

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
