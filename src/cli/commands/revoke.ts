import { createInterface } from 'node:readline'
import { isatty } from 'node:tty'
import type { Leases } from '../../leases.js'
import type { RevokeOutcome, Store } from '../../store.js'
import { has, type Parsed } from '../args.js'
import { EXIT, usageError } from '../exit.js'
import { suggest, type Target, targetOf } from '../target/connect.js'
import { holdingLine } from '../text/holding-line.js'
import { print, printable, printError, say } from '../text/output.js'
import { keyOf, withLeases } from './common.js'

/** `holdfast revoke`: an operator's hand. Exit 1 when there is nothing to take back. */
export async function revoke(parsed: Parsed): Promise<number> {
  const key = keyOf(parsed)
  const target = targetOf(parsed)
  const force = has(parsed, 'force')
  const ask = async (leases: Leases, store: Store): Promise<RevokeOutcome | 'declined'> => {
    refuseWhatItCannot(store, force, key, target)
    if (force && !has(parsed, 'yes') && !(await isMeant(leases, key))) return 'declined'
    return leases.revoke(key, { force })
  }
  const outcome = await withLeases(target, ask)
  if (outcome === 'declined') {
    say(`nothing was changed; to ask its holder instead: ${suggest(target, 'revoke', key)}`)
    return EXIT.no
  }
  if (has(parsed, 'json'))
    await print(
      `${JSON.stringify({ key, outcome: outcome.kind, ...('alsoFreed' in outcome && { alsoFreed: outcome.alsoFreed }) })}\n`,
    )
  else say(describe(outcome, key, target))
  return outcome.kind === 'absent' ? EXIT.no : EXIT.ok
}

function refuseWhatItCannot(store: Store, force: boolean, key: string, target: Target): void {
  if (store.traits.revoke !== 'force-only' || force) return
  throw usageError(
    `${target.place} cannot ask for a lease back; free it by force: ${suggest(target, 'revoke', key, '--force')}`,
  )
}

/** Asks a person, again if another holder has the key by the time of the answer: that one was not spoken of. */
async function isMeant(leases: Leases, key: string): Promise<boolean> {
  if (!isatty(0) || !isatty(2))
    throw usageError('--force frees the key while its holder may be working; say --yes if that is meant')
  for (let spokenOf: bigint | null = null; ; ) {
    const holding = await leases.inspect(key)
    if (!holding || holding.fence === spokenOf) return true
    const again = spokenOf === null ? '' : 'meanwhile '
    const who = holding.label === undefined ? 'its holder' : holding.label
    const harm =
      holding.state === 'kept'
        ? 'What its last holder wrote may still be on its way'
        : `${who} may still be working, and another could begin beside it`
    const question = `${again}${holdingLine(holding)}. ${harm}. Free it now? [y/N] `
    if (!/^y(es)?$/i.test((await answerTo(`holdfast: ${printable(question)}`)).trim())) return false
    spokenOf = holding.fence
  }
}

/**
 * A line from the terminal, which edits it: in Node's own editing mode Ctrl-C would end the reading, not the command. No
 * line (Ctrl-D) is an empty one.
 */
async function answerTo(question: string): Promise<string> {
  await printError(question)
  const lines = createInterface({ input: process.stdin, terminal: false })
  try {
    for await (const line of lines) return line
    await printError('\n')
    return ''
  } finally {
    lines.close()
  }
}

function describe(outcome: RevokeOutcome, key: string, target: Target): string {
  const name = JSON.stringify(key)
  const also = outcome.alsoFreed?.length
    ? `; freed with it: ${outcome.alsoFreed.map((each) => JSON.stringify(each)).join(', ')}`
    : ''
  switch (outcome.kind) {
    case 'freed':
      return `${name} is free now${also}; whoever held it is told at the next heartbeat, and may work until then`
    case 'refusing':
      return `asked for ${name} back: its holder is told, its renewals are refused; see when it is free: ${suggest(target, 'show', key)}`
    case 'asked':
      return `asked for ${name} back; nothing makes its holder let go; see when it is free: ${suggest(target, 'show', key)}`
    case 'absent':
      return `nobody holds ${name} (asked ${target.place})`
  }
}
