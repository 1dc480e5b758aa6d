import { Bench } from '../../test/cli/support.js'
import { judge, LOSSES, type Loss, round } from '../../test/support/run-losses.js'

export const summary = 'holdfast run loses its lease or its life, 30 times in each way: nothing of its command is left'

export async function run([rounds = '30', ttl = '3s', ...only]: readonly string[]): Promise<void> {
  for (const [loss, what] of Object.entries(LOSSES) as [Loss, string][]) {
    if (loss === 'all' || (only.length > 0 && !only.includes(loss))) continue
    const bench = new Bench()
    const gaps: number[] = []
    const waits: number[] = []
    for (let i = 0; i < Number(rounds); i++) {
      // At another moment of the heartbeat each time.
      const seen = await round(bench, loss, ttl, 20 + (i * 1_000) / Number(rounds))
      judge(loss, seen)
      gaps.push(seen.gapMs)
      waits.push(seen.afterMs)
    }
    bench.end()
    console.log(`${what}: ${rounds} rounds, TTL ${ttl}`)
    console.log(
      `  last sign of life before the next start: ${spread(gaps)}; from the fault to that start: ${spread(waits)}`,
    )
  }
}

function spread(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b)
  const [least = 0, middle = 0, most = 0] = [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)]
  return `${[least, middle, most].map((ms) => ms.toFixed(1)).join(' / ')} ms (least, median, most)`
}
