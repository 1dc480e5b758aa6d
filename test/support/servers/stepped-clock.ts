/** A server's wall clock that a test steps: `clock-shim.c`, compiled into the folder of the test. */
import { execFileSync } from 'node:child_process'
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCE = fileURLToPath(new URL('../../../../test/support/clock-shim.c', import.meta.url))

export interface SteppedClock {
  /** What the server has to be started with. */
  readonly env: Readonly<Record<string, string>>
  /** Moves the wall clock by so much from where it is, forward or back, at once and for good. */
  step(ms: number): void
  close(): void
}

export function steppedClock(folder: string): SteppedClock {
  const shim = join(folder, 'clock-shim.so')
  const file = join(folder, 'clock-offset')
  execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', shim, SOURCE])
  const fd = openSync(file, 'w+')
  let offsetMs = 0
  const write = () => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(BigInt(Math.round(offsetMs * 1e6)))
    writeSync(fd, bytes, 0, 8, 0)
  }
  write()
  return {
    env: { LD_PRELOAD: shim, CLOCK_SHIM_FILE: file },
    step(ms) {
      offsetMs += ms
      write()
    },
    close: () => closeSync(fd),
  }
}
