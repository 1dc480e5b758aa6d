import { conformance, type Harness, type Registered } from '../../src/conformance/index.js'
import { virtualEnvironment } from '../../src/simulation/index.js'
import type { Store } from '../../src/store.js'
import { type MemoryServer, memoryServer } from '../../src/stores/memory.js'

/** Makes one client of a backend; called once per backend, so that clients can share what they know. */
export type Clients = (server: MemoryServer) => () => Store

export interface Verdicts extends Registered {
  /** Names of the checks that failed, with what they said. */
  readonly failed: ReadonlyMap<string, string>
}

/** Runs the suite by itself, without a test runner, over a memory server of its own. */
export async function collect(clients: Clients, over: Partial<Harness> = {}): Promise<Verdicts> {
  const environment = virtualEnvironment(1)
  const server = memoryServer({ environment })
  const connect = clients(server)
  const runs: [string, () => Promise<void>][] = []
  const registered = await conformance({
    name: 'collected',
    test: (name, run) => runs.push([name.slice('collected: '.length), run]),
    open: async () => connect(),
    // A holder that is never heard of again: all that a death is to a store that sees none.
    kill: async (claim) => void (await connect().acquire(claim, { signal: new AbortController().signal })),
    wait: environment.advance,
    environment,
    slackMs: 0,
    ...over,
  })
  const failed = new Map<string, string>()
  for (const [name, run] of runs) {
    await run().catch((error: unknown) => failed.set(name, error instanceof Error ? error.message : String(error)))
  }
  return { ...registered, failed }
}
