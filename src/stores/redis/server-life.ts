/** What is asked of a server on every new connection, before anything else, and what follows from the answers. */
import { StoreError, type StoreUnsafeError } from '../../errors.js'
import type { Finding } from '../../store.js'
import { CLOCKS_APART_MS, type Facts, findingsOf, persistenceOf, refusalOf, UPTIME_STEP_MS } from './findings.js'
import type { Counter } from './keys.js'
import type { Settings } from './options.js'
import { codeOf, listOf, textOf } from './replies.js'

/** One server process, from its start to its end. */
export interface ServerLife {
  readonly runId: string
  readonly version: string
  /** Why it must not grant at all. */
  readonly refusal: StoreUnsafeError | null
  /** From when it may grant, by our clock, and why not before. */
  readonly readyAt: number
  readonly why: string
  /** Its leases and its counter outlive a crash of the server. */
  readonly durable: boolean
  /** Server time in µs minus our clock in ms x 1000; at most one round trip too large. */
  readonly aheadUs: number
  readonly serverTimeMs: number
  readonly findings: readonly Finding[]
}

export type Ask = (...args: string[]) => Promise<unknown>

const UPTIME_TOLERANCE_MS = 2_000
const REMEMBERED = 16
const RUN_ID = /^[0-9a-f]+$/

interface Sighting {
  readonly at: number
  readonly uptimeMs: number
}

/** When we first saw each server life, by our own clock: what we have watched long enough needs no uptime. */
export class Sightings {
  readonly #seen = new Map<string, Sighting>()

  first(runId: string, now: Sighting): Sighting {
    const known = this.#seen.get(runId)
    if (known) return known
    if (this.#seen.size >= REMEMBERED) this.#seen.delete(this.#seen.keys().next().value as string)
    this.#seen.set(runId, now)
    return now
  }
}

export async function inspectServer(
  ask: Ask,
  place: string,
  counter: Counter,
  settings: Settings,
  sightings: Sightings,
): Promise<ServerLife> {
  const { clock } = settings.environment
  const sentAt = clock.now()
  // One round trip. CONFIG is often forbidden, which is an answer too; a counter of the wrong type is the steps' matter.
  const [infoReply, timeReply, config, value, born] = await Promise.all([
    ask('INFO').then(textOf),
    ask('TIME').then(listOf),
    ask('CONFIG', 'GET', '*append*').then(pairs, answeredNo),
    ask('GET', counter.value).then(textOrNull, answeredNo),
    ask('GET', counter.born).then(textOrNull, answeredNo).then(runIdOrNull),
  ])
  // What is told of a moment between the question and the answer is taken for the later one: an age that has grown meanwhile
  // would let the server grant too soon.
  const answeredAt = clock.now()
  const info = fields(infoReply)
  const runId = info.get('run_id')
  if (runId === undefined || !RUN_ID.test(runId))
    throw new StoreError(`${place} answers INFO without a run_id: is it Redis?`, 'none')
  if (info.get('loading') === '1') throw new StoreError(`${place} is still loading its data`, 'none')

  const timeUs = Number(textOf(timeReply[0])) * 1e6 + Number(textOf(timeReply[1]))
  const facts: Facts = {
    place,
    info,
    config,
    answeredAt,
    serverTimeMs: timeUs / 1000,
    apartMs: timeUs / 1000 - settings.environment.clock.wall(),
    uptimeMs: Number(info.get('uptime_in_seconds') ?? -1) * 1000,
    survived: value !== null && born !== null && born !== runId,
  }
  const durable = writesEverything(facts)
  // For the life after this one. Settings tell only of the present life: what they were in the one before must be written down.
  if (durable && born === null) await ask('SET', counter.born, runId, 'NX').catch(answeredNo)
  if (isForgetful(facts) && born !== null) await ask('DEL', counter.born).catch(answeredNo)
  const { readyAt, why } = readiness(
    facts,
    durable,
    settings,
    sightings.first(runId, { at: answeredAt, uptimeMs: facts.uptimeMs }),
  )
  return {
    runId,
    version: info.get('redis_version') ?? 'unknown',
    refusal: refusalOf(facts, settings),
    readyAt,
    why,
    durable,
    aheadUs: timeUs - sentAt * 1000,
    serverTimeMs: facts.serverTimeMs,
    findings: findingsOf(facts, durable, settings, readyAt, settings.environment),
  }
}

/** An acknowledged write is on disk. `everysec` is not enough: with a slow disk it forgets acknowledged writes in a crash. */
function writesEverything({ info, config }: Facts): boolean {
  return (
    info.get('aof_enabled') === '1' &&
    config?.get('appendonly') === 'yes' &&
    config.get('appendfsync') === 'always' &&
    config.get('no-appendfsync-on-rewrite') === 'no'
  )
}

/** It may forget acknowledged writes. Where CONFIG is forbidden nobody knows. */
const isForgetful = (facts: Facts): boolean =>
  !writesEverything(facts) && (facts.config !== null || facts.info.get('aof_enabled') !== '1')

/**
 * Delayed restart: a server that may have forgotten leases grants nothing until every one of them must have ended.
 * (Redlock, redis.io "Distributed Locks", "Performance, crash recovery and fsync".)
 */
function readiness(facts: Facts, durable: boolean, { maxTtlMs, trustRestart }: Settings, first: Sighting) {
  const neededMs = maxTtlMs + UPTIME_STEP_MS
  const watchedAt = first.at + neededMs
  if (trustRestart || (durable && facts.survived)) return { readyAt: Number.NEGATIVE_INFINITY, why: '' }

  const { uptimeMs, apartMs, answeredAt } = facts
  const grewUnlike = Math.abs(uptimeMs - first.uptimeMs - (answeredAt - first.at)) > UPTIME_TOLERANCE_MS
  const doubt =
    uptimeMs < 0 || grewUnlike
      ? 'its clock was moved'
      : Math.abs(apartMs) > CLOCKS_APART_MS
        ? `its clock is ${Math.round(Math.abs(apartMs) / 1000)} s ${apartMs < 0 ? 'behind' : 'ahead of'} ours`
        : null
  const readyAt = doubt === null ? Math.min(watchedAt, answeredAt + neededMs - uptimeMs) : watchedAt
  const memory = durable
    ? 'whether it still has its leases is not sure: an earlier life that forgot nothing has left no word'
    : persistenceOf(facts)
  const age =
    doubt === null ? `it started ${Math.round(uptimeMs / 1000)} s ago` : `when it started is not sure (${doubt})`
  const why =
    `${age}, and ${memory}; it grants once every lease from before must have ended (maxTtlMs ${maxTtlMs}). ` +
    `No wait with appendonly yes and appendfsync always, before the restart too, or, for development only, with trustRestart (--trust-restart)`
  return { readyAt, why }
}

function fields(text: string): Map<string, string> {
  return new Map(
    text.split(/\r?\n/).flatMap((line) => {
      const colon = line.indexOf(':')
      return colon > 0 && !line.startsWith('#') ? [[line.slice(0, colon), line.slice(colon + 1)] as const] : []
    }),
  )
}

/** Whatever else somebody has put there is left alone, and proves nothing. */
const runIdOrNull = (text: string | null): string | null => (text !== null && RUN_ID.test(text) ? text : null)

const textOrNull = (reply: unknown): string | null => (reply === null ? null : textOf(reply))

function pairs(reply: unknown): Map<string, string> {
  const flat = listOf(reply).map(textOf)
  return new Map(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] ?? ''] as const] : [])))
}

/** The server's own "no" is an answer here; a broken connection is not. */
function answeredNo(error: unknown): null {
  if (codeOf(error) === null || codeOf(error) === 'LOADING' || codeOf(error) === 'BUSY') throw error
  return null
}
