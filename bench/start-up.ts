import { spawnSync } from 'node:child_process'
import { MAIN } from '../test/cli/support.js'
import { type Median, medianOf } from './support/median.js'
import { inFolder, type Surroundings } from './support/surroundings.js'

export const summary = 'what holdfast run costs beside flock and node -e 0: [rounds, 40]'

/** The goal: at most this many times `node -e 0`, and this many milliseconds. */
const TIMES = 1.5
const PLUS_MS = 30

const node = process.execPath
const COMMANDS: Record<string, readonly [string, ...string[]]> = {
  'node -e 0': [node, '-e', '0'],
  'flock f true': ['flock', 'f', 'true'],
  'holdfast --version': [node, MAIN, '--version'],
  'holdfast run k -- true': [node, MAIN, 'run', 'k', '--', 'true'],
}
const NODE = 'node -e 0'
const RUN = 'holdfast run k -- true'

export async function run([rounds = '40']: readonly string[]): Promise<void> {
  await inFolder((where) => report(measure(Number(rounds), where)))
}

/** Milliseconds by command, one of each round. One after the other in every round: what disturbs one disturbs all. */
function measure(rounds: number, where: Surroundings): Map<string, number[]> {
  const times = new Map(Object.keys(COMMANDS).map((name) => [name, [] as number[]]))
  // The first round, which makes the lease file and warms the disk cache, does not count.
  for (let round = 0; round <= rounds; round++) {
    const order = Object.entries(COMMANDS)
    if (round % 2) order.reverse()
    for (const [name, [file, ...args]] of order) {
      const began = performance.now()
      const { status, error, stderr } = spawnSync(file, args, { ...where, stdio: ['ignore', 'ignore', 'pipe'] })
      const ms = performance.now() - began
      if (status !== 0) throw new Error(`${name} ended with ${status}: ${error?.message ?? stderr}`)
      if (round > 0) times.get(name)?.push(ms)
    }
  }
  return times
}

function report(times: Map<string, number[]>): void {
  const ofNode = times.get(NODE) ?? []
  console.log(`${ofNode.length} rounds, interleaved; medians, with the interval that holds the true one at 95 %\n`)
  console.log(`${''.padEnd(24)}${'ms'.padEnd(26)}times node -e 0`)
  for (const [name, all] of times) {
    const ratios = all.map((ms, round) => ms / (ofNode[round] ?? Number.NaN))
    console.log(`${name.padEnd(24)}${shown(medianOf(all), 1).padEnd(26)}${shown(medianOf(ratios), 2)}`)
  }
  const beyond = medianOf((times.get(RUN) ?? []).map((ms, round) => ms - TIMES * (ofNode[round] ?? Number.NaN)))
  const isMet = beyond.median <= PLUS_MS
  console.log(`\ngoal: ${RUN} takes at most ${TIMES} × ${NODE} + ${PLUS_MS} ms`)
  console.log(`it takes ${TIMES} × ${NODE} + ${shown(beyond, 1)} ms; goal met: ${isMet ? 'yes' : 'no'}`)
  if (!isMet) process.exitCode = 1
}

const shown = ({ median, low, high }: Median, digits: number): string =>
  `${median.toFixed(digits)} (${low.toFixed(digits)} to ${high.toFixed(digits)})`
