import { closeSync, openSync, readSync } from 'node:fs'
import { createRequire } from 'node:module'

/** Read ahead of need: a call to the kernel costs more than what is done with one owner's bytes. */
const POOL_BYTES = 1_024
let pool: Buffer = Buffer.alloc(0)

/**
 * As good as those of `node:crypto`, from the same source (random(4)): but loading that takes 2 ms, a fiftieth of what
 * a short `holdfast run` takes in all.
 */
export function randomBytes(count: number): Buffer {
  if (pool.length < count) pool = fromDevice(Math.max(count, POOL_BYTES)) ?? fromCrypto(Math.max(count, POOL_BYTES))
  const bytes = pool.subarray(0, count)
  pool = pool.subarray(count)
  return bytes
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
