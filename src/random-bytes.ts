import { closeSync, openSync, readSync } from 'node:fs'
import { createRequire } from 'node:module'

/** Read ahead of need: a call to the kernel costs more than what is done with one owner's bytes. */
const POOL_BYTES = 4_096
let pool: Buffer = Buffer.alloc(0)
let used = 0

/**
 * As good as those of `node:crypto`, from the same source (random(4)): but loading that takes 2 ms, a fiftieth of what
 * a short `holdfast run` takes in all.
 */
export function randomBytes(count: number): Buffer {
  const from = take(count)
  return pool.subarray(from, from + count)
}

/** The same as base64url. */
export function randomText(count: number): string {
  const from = take(count)
  return pool.toString('base64url', from, from + count)
}

/** Where in the pool the next ones are, which nobody is given again. */
function take(count: number): number {
  if (pool.length - used < count) {
    const bytes = Math.max(count, POOL_BYTES)
    pool = fromDevice(bytes) ?? fromCrypto(bytes)
    used = 0
  }
  used += count
  return used - count
}

function fromDevice(count: number): Buffer | null {
  try {
    const device = openSync('/dev/urandom', 'r')
    try {
      const bytes = Buffer.alloc(count)
      return readSync(device, bytes) === count ? bytes : null
    } finally {
      closeSync(device)
    }
  } catch {
    // Not every system has it.
    return null
  }
}

function fromCrypto(count: number): Buffer {
  const crypto = createRequire(import.meta.url)('node:crypto') as typeof import('node:crypto')
  return crypto.randomBytes(count)
}
