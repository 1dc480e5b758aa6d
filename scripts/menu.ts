/**
 * Long runs, each a module in a folder: with a name it is run, without one the `usual` one is, with the options given.
 * `--help`, or no name where none is usual, lists them. It has failed when `run` rejects.
 */
import { readdirSync } from 'node:fs'

export interface Entry {
  /** One line for the list. */
  readonly summary: string
  run(args: readonly string[]): Promise<void>
}

export async function menu(what: string, folder: URL, usual?: string): Promise<void> {
  const names = readdirSync(folder)
    .filter((file) => file.endsWith('.js'))
    .map((file) => file.slice(0, -'.js'.length))
    .sort()
  const load = async (name: string) => (await import(new URL(`${name}.js`, folder).href)) as Entry

  const given = process.argv.slice(2)
  const isNamed = given[0] !== undefined && !given[0].startsWith('-')
  const [name, ...args] = isNamed || usual === undefined ? given : [usual, ...given]
  if (name === undefined || given.includes('--help')) {
    for (const each of names) console.log(`${each.padEnd(24)}${(await load(each)).summary}`)
  } else if (names.includes(name)) {
    await (await load(name)).run(args)
  } else {
    console.error(`no ${what} is named ${JSON.stringify(name)}; there are: ${names.join(', ')}`)
    process.exit(64)
  }
}
