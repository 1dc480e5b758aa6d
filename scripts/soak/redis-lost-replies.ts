import { runRounds } from '../../test/support/redis-rounds.js'

export const summary = 'contenders on one Redis server while replies are lost, late, cut off: [rounds, 1000] [seed]'

export async function run([rounds = '1000', seed = `${Date.now()}`]: readonly string[]): Promise<void> {
  console.log(`seed ${seed}`)
  const result = await runRounds({ seed, rounds: Number(rounds), lanes: 8 })
  console.log(result)
  const { overlaps, fencesOutOfOrder, ghosts, stuck } = result
  const wrong = [...overlaps, ...fencesOutOfOrder, ...ghosts, ...stuck]
  if (wrong.length > 0) throw new Error(`seed ${seed}: ${wrong.join('; ')}`)
}
