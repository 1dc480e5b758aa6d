import type { Parsed } from '../args.js'
import { EXIT, usageError } from '../exit.js'
import { shellWord } from '../shell.js'
import { SHELLS } from '../specs/completion.js'
import { print } from '../text/output.js'

/** Each shell's script is loaded when it is asked for. */
const SCRIPTS: Record<(typeof SHELLS)[number], () => Promise<string>> = {
  bash: async () => (await import('../completion/bash.js')).bash(),
  zsh: async () => (await import('../completion/zsh.js')).zsh(),
  fish: async () => (await import('../completion/fish.js')).fish(),
}

/** `holdfast completion bash|zsh|fish` */
export async function completion(parsed: Parsed): Promise<number> {
  const word = parsed.positionals[0] ?? ''
  const shell = SHELLS.find((each) => each === word)
  if (!shell) throw usageError(`there is no completion for ${shellWord(word)}; there is one for ${SHELLS.join(', ')}`)
  await print(await SCRIPTS[shell]())
  return EXIT.ok
}
