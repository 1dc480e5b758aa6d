/** A holding as people and programs see it. Nothing here carries an owner. */
import { hostname } from 'node:os'
import type { Holding, Store } from '../../store.js'
import { suggest, type Target } from '../target/connect.js'
import { formatDuration } from './duration.js'
import { type Column, table } from './layout.js'
import { printable } from './output.js'
import { fullTime, isoTime } from './wall-time.js'

const COLUMNS: readonly Column[] = [
  { head: 'KEY', flexible: true },
  { head: 'FENCE', leaveOut: 2 },
  { head: 'STATE' },
  { head: 'HOLDER', flexible: true },
  { head: 'HELD FOR' },
  { head: 'TTL LEFT', leaveOut: 3 },
  { head: 'WAITING', leaveOut: 1 },
]

export const holdingTable = (holdings: readonly Holding[], width: number | null = null): string =>
  table(COLUMNS, holdings.map(holdingRow), width)

const span = (ms: number | undefined): string => (ms === undefined ? '-' : formatDuration(ms))

function holdingRow(holding: Holding): string[] {
  const { key, fence, state, label, heldForMs, remainingMs, waiters } = holding
  const waiting = waiters === undefined ? '-' : String(waiters.length)
  return [key, String(fence), state, label ?? '-', span(heldForMs), span(remainingMs), waiting]
}

/**
 * Named one by one, so that nothing else a store may carry ever leaves; the fence as text, JSON has no such integers.
 * `wall` is the wall clock when the store answered.
 */
export function holdingJson(holding: Holding, wall: number): Record<string, unknown> {
  const { namespace, key, fence, state, label, heldForMs, remainingMs, waiters } = holding
  return {
    namespace,
    key,
    fence: String(fence),
    state,
    label,
    heldForMs: whole(heldForMs),
    since: heldForMs === undefined ? undefined : isoTime(wall - heldForMs),
    remainingMs: whole(remainingMs),
    waiters,
  }
}

const whole = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : Math.round(ms))

/** What makes two answers differ for whoever watches: everything but the passing of time. */
export const identity = ({ key, fence, state, label, waiters }: Holding): unknown => [
  key,
  String(fence),
  state,
  label,
  waiters,
]

const STATES = {
  held: 'held',
  revoked: 'asked back: its holder is told, and cannot renew it',
  kept: 'released, but kept taken for a while (--min-hold or --lock-delay)',
}

/** All that is known about one key, one fact on each line. */
export function holdingFacts(key: string, holding: Holding | null, target: Target, store: Store, wall: number): string {
  const { state, label, heldForMs, remainingMs, fence, waiters } = holding ?? {}
  // Those who meet at a file whose clock we can read are on our host; elsewhere only the label may tell.
  const isHere = store.traits.scope === 'host' && heldForMs !== undefined
  const facts: [string, string | undefined][] = [
    ['key', key],
    ['state', state ? STATES[state] : 'free'],
    ['holder', label],
    ['host', isHere ? `this one (${hostname()})` : undefined],
    ['held for', heldForMs === undefined ? undefined : formatDuration(heldForMs)],
    ['since', heldForMs === undefined ? undefined : fullTime(wall - heldForMs)],
    ['ttl left', remainingMs === undefined ? undefined : formatDuration(remainingMs)],
    ['fence', fence === undefined ? undefined : String(fence)],
    ['waiting', waiters && (waiters.join(', ') || 'nobody')],
    ['store', target.place],
    ['namespace', target.namespace],
    ['next', holding ? nextStep(holding, target) : takeIt(key, target)],
  ]
  return facts
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name.padEnd(10)}${printable(value)}\n`]))
    .join('')
}

export const takeIt = (key: string, target: Target): string => `to take it: ${suggest(target, 'run', key)} -- command`

function nextStep({ key, state, remainingMs }: Holding, target: Target): string {
  const force = `free it now, at your risk: ${suggest(target, 'revoke', key, '--force')}`
  const left = remainingMs === undefined ? 'when its ttl ends' : `in ${formatDuration(remainingMs)}`
  if (state === 'revoked') return `wait: its time is up ${left}, unless it lets go before; or ${force}`
  if (state === 'kept') return `wait: it is free ${left}; or ${force}`
  return `to ask for it back: ${suggest(target, 'revoke', key)}`
}
