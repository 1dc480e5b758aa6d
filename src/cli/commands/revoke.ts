import { createInterface } from 'node:readline/promises'
import { isatty } from 'node:tty'
import type { Leases } from '../../leases.js'
import type { RevokeOutcome, Store } from '../../store.js'
import { has, type Parsed } from '../args.js'
import { suggest, type Target, targetOf } from '../connect.js'
import { EXIT, usageError } from '../exit.js'
import { print, printable, say } from '../output.js'
import { holdingLine } from '../table.js'
import { keyOf, withLeases } from './common.js'

/** `holdfast revoke`: an operator's hand. Exit 1 when there is nothing to take back. */
export async function revoke(parsed: Parsed): Promise<number> {
  const key = keyOf(parsed)
  const target = targetOf(parsed)
  const force = has(parsed, 'force')
  const ask = async (leases: Leases, store: Store): Promise<RevokeOutcome> => {
    refuseWhatItCannot(store, force, key, target)
    if (force && !has(parsed, 'yes')) await confirm(leases, key)
    return leases.revoke(key, { force })
  }
  const outcome = await withLeases(target, ask)
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

async function confirm(leases: Leases, key: string): Promise<void> {
  if (!isatty(0) || !isatty(2))
    throw usageError('--force frees the key while its holder may be working; say --yes if that is meant')
  const holding = await leases.inspect(key)
  if (!holding) return
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const question = `${holdingLine(holding)}. Its holder may still be working: two may work at once. Free it now? [y/N] `
    const answer = await prompt.question(`holdfast: ${printable(question)}`)
    if (!/^y(es)?$/i.test(answer.trim()))
      throw usageError(`nothing was changed; to ask its holder instead, leave out --force`)
  } finally {
    prompt.close()
  }
}

function describe(outcome: RevokeOutcome, key: string, target: Target): string {
  const name = JSON.stringify(key)
  const also = outcome.alsoFreed?.length
    ? `; freed with it: ${outcome.alsoFreed.map((each) => JSON.stringify(each)).join(', ')}`
    : ''
  switch (outcome.kind) {
    case 'freed':
      return `${name} is free now${also}; its old holder is told at its next heartbeat and may work until then`
    case 'refusing':
      return `asked for ${name} back: its holder is told, its renewals are refused; see when it is free: ${suggest(target, 'show', key)}`
    case 'asked':
      return `asked for ${name} back; nothing makes its holder let go; see when it is free: ${suggest(target, 'show', key)}`
    case 'absent':
      return `nobody holds ${name} (asked ${target.place})`
  }
}
