import { crowd, crowdAtExpiry } from '../../test/support/sqlite-scenarios.js'

export const summary =
  'the SQLite store: 20 processes on a cold file, and 16 at the moment of expiry, as often as asked (1000: a quarter of an hour)'

export async function run([rounds = '1000']: readonly string[]): Promise<void> {
  for (const [mode, cycles] of [
    ['wal', 500],
    ['delete', 100],
  ] as const) {
    const tookMs = await crowd(20, cycles, mode, true)
    console.log(`20 processes x ${cycles} cycles, ${mode}, beside a reader: in order, ${(tookMs / 1000).toFixed(1)} s`)
  }
  await crowdAtExpiry(16, Number(rounds))
  console.log(`16 processes at the moment of expiry, ${rounds} rounds: exactly one each time, never before the end`)
}
