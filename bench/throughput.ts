import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MAIN } from '../test/cli/support.js'
import { STREAM } from '../test/support/stream.js'
import { medianOf } from './support/median.js'
import { inFolder, type Surroundings } from './support/surroundings.js'

export const summary =
  'a stream through stdin and stdout of a command, every byte compared, alone and under a lease: [GB, 10] [pairs, 5]'

/** The goal: under a lease, the command takes at most this many times as long as alone. */
const TIMES = 1.05

export async function run([gigabytes = '10', pairs = '5']: readonly string[]): Promise<void> {
  const bytes = Number(gigabytes) * 1e9
  const ratios: number[] = []
  await inFolder((where) => {
    for (let pair = 1; pair <= Number(pairs); pair++) ratios.push(ratioOf(pair, bytes, where))
  })
  const { median, low, high } = medianOf(ratios)
  const isMet = median <= TIMES
  const [middle, from, to] = [median, low, high].map((ratio) => ratio.toFixed(3))
  console.log(`every byte unchanged; median of ${pairs} pairs: time × ${middle} (${from} to ${to})`)
  console.log(`goal: at most × ${TIMES}; met: ${isMet ? 'yes' : 'no'}`)
  if (!isMet) process.exitCode = 1
}

/** Each of the two comes first in turn: whatever changes meanwhile favours neither. */
function ratioOf(pair: number, bytes: number, where: Surroundings): number {
  const seconds = { alone: 0, leased: 0 }
  for (const way of pair % 2 ? (['alone', 'leased'] as const) : (['leased', 'alone'] as const))
    seconds[way] = secondsOf(way, bytes, where)
  const ratio = seconds.leased / seconds.alone
  const [alone, leased] = [seconds.alone, seconds.leased].map((each) => `${(bytes / 1e6 / each).toFixed(0)} MB/s`)
  console.log(`pair ${pair}: alone ${alone}, under a lease ${leased}: time × ${ratio.toFixed(3)}`)
  return ratio
}

/** How long the copying took, by the clock of the command that copied. */
function secondsOf(way: 'alone' | 'leased', bytes: number, where: Surroundings): number {
  const stream = `${process.execPath} ${STREAM}`
  const copy = `${stream} copy report`
  const command = way === 'alone' ? copy : `${process.execPath} ${MAIN} run k -- ${copy}`
  const line = `${stream} write ${bytes} | ${command} | ${stream} check ${bytes}`
  const { status, stdout, stderr } = spawnSync('sh', ['-c', line], { ...where, encoding: 'utf8' })
  if (status !== 0 || stderr !== '' || !stdout.endsWith(' bytes unchanged\n'))
    throw new Error(`${line}\n${stdout}${stderr}`)
  return Number(readFileSync(join(where.cwd, 'report'), 'utf8'))
}
