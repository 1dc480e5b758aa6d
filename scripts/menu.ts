/** Long runs, each a module in a folder: without a name they are listed, with one it is run. It has failed when `run` rejects. */
import { readdirSync } from 'node:fs'

export interface Entry {
  /** One line for the list. */
  readonly summary: string
  run(args: readonly string[]): Promise<void>
}

export async function menu(what: string, folder: URL): Promise<void> {
  const names = readdirSync(folder)
    .filter((file) => file.endsWith('.js'))
    .map((file) => file.slice(0, -'.js'.length))
    .sort()
  const load = async (name: string) => (await import(new URL(`${name}.js`, folder).href)) as Entry

  const [name, ...args] = process.argv.slice(2)
  if (name === undefined || name === '--help') {
    for (const each of names) console.log(`${each.padEnd(24)}${(await load(each)).summary}`)
  } else if (names.includes(name)) {
    await (await load(name)).run(args)
  } else {
    console.error(`no ${what} is named ${JSON.stringify(name)}; there are: ${names.join(', ')}`)
    process.exit(64)
  }
}
