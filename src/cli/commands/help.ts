import type { Parsed } from '../args.js'
import { commandNamed } from '../commands.js'
import { EXIT } from '../exit.js'
import { helpOf, overview } from '../help.js'
import { print } from '../text/output.js'

/** `holdfast help [command]` */
export async function help(parsed: Parsed): Promise<number> {
  const [word] = parsed.positionals
  await print(word === undefined ? overview() : helpOf(commandNamed(word)))
  return EXIT.ok
}
