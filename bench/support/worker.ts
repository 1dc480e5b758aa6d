/** A process with one contestant: `worker.js ID SETUP`. Does what it is asked, one job after the other or at once. */
import { CONTESTANTS, type Id } from '../contestants/index.js'
import { JOBS } from '../jobs/index.js'
import type { Answer, Question } from './workers.js'

const [id, setup] = process.argv.slice(2)
const opened = CONTESTANTS[id as Id].open(JSON.parse(setup ?? ''))

process.on('message', async ({ number, job, wish }: Question) => {
  const answer = (reply: Answer) => process.send?.(reply)
  try {
    const work = JOBS[job] as (contestant: Awaited<typeof opened>, wish: unknown) => Promise<unknown>
    answer({ number, value: await work(await opened, wish) })
  } catch (error) {
    answer({ number, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  }
})
process.on('disconnect', () => process.exit())
