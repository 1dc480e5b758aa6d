/** `/proc/uptime` counts in steps of this. */
const BOOT_STEP_MS = 10

/**
 * Notices suspend: the boot clock goes on while the monotonic clock stops, so their difference grows. `/proc/uptime`
 * is read between two monotonic reads; only growth beyond its resolution counts.
 */
export class SuspendMeter {
  /** Milliseconds of suspend noticed so far; an upper bound, so that deadlines come early rather than late. */
  suspended = 0
  readonly #readBoot: () => number
  readonly #readMonotonic: () => number
  #low = Number.NEGATIVE_INFINITY
  #high = Number.POSITIVE_INFINITY

  constructor(readBoot: () => number, readMonotonic: () => number) {
    this.#readBoot = readBoot
    this.#readMonotonic = readMonotonic
  }

  look(): void {
    for (let attempt = 0; attempt < 3; attempt++) {
      const before = this.#readMonotonic()
      const boot = this.#readBoot()
      const after = this.#readMonotonic()
      const low = boot - after
      const high = boot + BOOT_STEP_MS - before
      // A scheduler pause or a suspend between the reads makes the bounds wide: read again.
      if (after - before > 2 && attempt < 2) continue
      if (low > this.#high) {
        this.suspended += high - this.#low
        this.#low = low
        this.#high = high
      } else {
        this.#low = Math.max(this.#low, low)
        this.#high = Math.max(this.#low, Math.min(this.#high, high))
      }
      return
    }
  }
}
