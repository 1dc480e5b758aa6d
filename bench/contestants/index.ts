import type { Entry } from './contestant.js'
import { holdfast } from './holdfast.js'
import { raw } from './raw.js'
import { redisSemaphore } from './redis-semaphore.js'
import { redlock4, redlock5, sesamecare } from './redlock.js'
import { redlockUniversal } from './redlock-universal.js'

/** By the names of the option `--only`, in the order of the tables. */
export const CONTESTANTS = {
  raw,
  holdfast,
  'redlock-4': redlock4,
  'redlock-5': redlock5,
  sesamecare,
  'redis-semaphore': redisSemaphore,
  'redlock-universal': redlockUniversal,
} as const satisfies Record<string, Entry>

export type Id = keyof typeof CONTESTANTS
