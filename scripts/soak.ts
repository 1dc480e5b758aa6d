/**
 * Long runs that are too slow for every test run: `npm run soak` lists them, `npm run soak NAME [args…]` runs one. Each is
 * a module in `scripts/soak/`; it has failed when `run` rejects.
 */
import { readdirSync } from 'node:fs'

export interface Soak {
  /** One line for the list. */
  readonly summary: string
  run(args: readonly string[]): Promise<void>
}

const folder = new URL('./soak/', import.meta.url)
const names = readdirSync(folder)
  .filter((file) => file.endsWith('.js'))
  .map((file) => file.slice(0, -'.js'.length))
  .sort()
const load = async (name: string) => (await import(new URL(`${name}.js`, folder).href)) as Soak

const [name, ...args] = process.argv.slice(2)
if (name === undefined) {
  for (const each of names) console.log(`${each.padEnd(24)}${(await load(each)).summary}`)
} else if (names.includes(name)) {
  await (await load(name)).run(args)
} else {
  console.error(`no soak is named ${JSON.stringify(name)}; there are: ${names.join(', ')}`)
  process.exit(64)
}
