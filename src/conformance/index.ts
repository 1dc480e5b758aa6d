import { acquireChecks } from './acquire.js'
import { ambiguityChecks } from './ambiguity.js'
import { Bench } from './bench.js'
import { cancellationChecks } from './cancellation.js'
import type { Check } from './check.js'
import { contentionChecks } from './contention.js'
import { deathChecks } from './death.js'
import { expiryChecks } from './expiry.js'
import { fencingChecks } from './fencing.js'
import type { Harness, Skip } from './harness.js'
import { isolationChecks } from './isolation.js'
import { listingChecks } from './listing.js'
import { namesChecks } from './names.js'
import { orderChecks } from './order.js'
import { releaseChecks } from './release.js'
import { renewChecks } from './renew.js'
import { revokeChecks } from './revoke.js'
import { traitsChecks } from './traits.js'
import { watchChecks } from './watch.js'

export type { Harness, LossyLink, Skip, TestFunction } from './harness.js'

const checks: readonly Check[] = [
  ...acquireChecks,
  ...renewChecks,
  ...releaseChecks,
  ...expiryChecks,
  ...fencingChecks,
  ...contentionChecks,
  ...ambiguityChecks,
  ...cancellationChecks,
  ...isolationChecks,
  ...namesChecks,
  ...revokeChecks,
  ...listingChecks,
  ...watchChecks,
  ...orderChecks,
  ...deathChecks,
  ...traitsChecks,
]

export interface Registered {
  /** The checks that were registered, in order. */
  readonly tests: readonly string[]
  readonly skipped: readonly Skip[]
  /** The checks of properties that the store does not declare, or that the harness has no means for. */
  readonly notApplicable: readonly string[]
}

/**
 * Certifies a store: registers one test for each property that the store, by its traits and members, declares. Opens
 * one client to read those, so it must be awaited before the runner starts.
 * @throws when a skip names no check, or gives no reason.
 */
export async function conformance(harness: Harness): Promise<Registered> {
  const reasons = new Map(harness.skip?.map(({ test, reason }) => [test, reason]))
  refuseBadSkips(reasons)
  const store = await harness.open()
  const applicable = checks.filter((check) => check.applies?.(store, harness) ?? true)
  const { traits } = store
  await store.close()

  const tests: string[] = []
  const skipped: Skip[] = []
  for (const check of applicable) {
    const name = `${harness.name}: ${check.name}`
    const run = () => runOn(new Bench(harness, traits), check)
    const reason = reasons.get(check.name)
    if (reason === undefined) {
      tests.push(check.name)
      harness.test(name, run)
    } else {
      skipped.push({ test: check.name, reason })
      harness.test.skip?.(`${name} (skipped: ${reason})`, run)
    }
  }
  const notApplicable = checks.filter((check) => !applicable.includes(check)).map((check) => check.name)
  return { tests, skipped, notApplicable }
}

/** The names of all checks, for skips and for documents. */
export const checkNames: readonly string[] = checks.map((check) => check.name)

async function runOn(bench: Bench, check: Check): Promise<void> {
  try {
    await check.run(bench)
  } finally {
    await bench.close()
  }
}

function refuseBadSkips(reasons: ReadonlyMap<string, string>): void {
  for (const [test, reason] of reasons) {
    if (!checkNames.includes(test)) throw new Error(`skip: ${JSON.stringify(test)} is not a check of this suite`)
    if (reason.trim() === '') throw new Error(`skip: ${JSON.stringify(test)} needs a reason`)
  }
}
