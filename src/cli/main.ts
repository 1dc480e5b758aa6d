#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { has, type Parsed, parse } from './args.js'
import { commandNamed } from './commands.js'
import { CliError, EXIT, exitCodeOf, isAdrift } from './exit.js'
import { inOurWords } from './text/our-words.js'
import { flushed, print, printError, say } from './text/output.js'

/** How long the end of holdfast waits for a reader of its messages. */
const FLUSH_MS = 2_000
const debug = process.env.HOLDFAST_DEBUG === '1'

/** Each command is loaded when it is asked for: start-up time is part of every cron job. */
const HANDLERS: Record<string, () => Promise<(parsed: Parsed) => Promise<number>>> = {
  run: async () => (await import('./commands/run.js')).run,
  ls: async () => (await import('./commands/ls.js')).ls,
  show: async () => (await import('./commands/show.js')).show,
  revoke: async () => (await import('./commands/revoke.js')).revoke,
  completion: async () => (await import('./commands/completion.js')).completion,
  help: async () => (await import('./commands/help.js')).help,
}

async function main(argv: readonly string[]): Promise<number> {
  const [first, ...rest] = argv
  if (first === undefined) {
    await printError((await import('./help.js')).overview())
    return EXIT.usage
  }
  if (first === '--version') return shown(`${version()}\n`)
  if (first === '--help' || first === '-h') return shown((await import('./help.js')).overview())
  const spec = commandNamed(first)
  const parsed = parse(spec, rest)
  if (has(parsed, 'help')) return shown((await import('./help.js')).helpOf(spec))
  const handler = await HANDLERS[spec.name]?.()
  if (!handler) throw new Error(`no handler for ${spec.name}`)
  return handler(parsed)
}

async function shown(text: string): Promise<number> {
  await print(text)
  return EXIT.ok
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
  return String((manifest as { version: unknown }).version)
}

const ADRIFT = 'the current folder does not exist any more; go to another one, or give absolute paths'

const wordsOf = (error: Error): string => (error instanceof CliError ? error.message : inOurWords(error.message))

/** One line and an exit code for whatever went wrong. */
function failed(error: unknown): number {
  const exitCode = exitCodeOf(error)
  const text = isAdrift(error) ? ADRIFT : error instanceof Error ? wordsOf(error) : String(error)
  say(exitCode === null ? `unexpected: ${text}; please report it, with what HOLDFAST_DEBUG=1 prints` : text)
  if (debug && error instanceof Error) for (const line of (error.stack ?? '').split('\n')) say(line)
  return exitCode ?? EXIT.software
}

async function exit(code: number): Promise<never> {
  await flushed(FLUSH_MS)
  const { leaveTerminal } = await import('./process/leave-terminal.js')
  leaveTerminal(code)
  process.exit(code)
}

let hasCrashed = false

/** Nothing may run on without its lease because of a fault of ours. The first fault decides how holdfast ends. */
async function crashed(error: unknown): Promise<void> {
  if (hasCrashed) return
  hasCrashed = true
  const { killEverything } = await import('./run/hold.js')
  try {
    await killEverything()
  } finally {
    await exit(failed(error))
  }
}

// Node's own warnings are for developers, not for whoever reads the mail of a cron job.
process.removeAllListeners('warning')
if (debug) process.on('warning', (warning) => say(`${warning.name}: ${warning.message}`))
process.on('uncaughtException', (error) => void crashed(error))
process.on('unhandledRejection', (error) => void crashed(error))

// A promise of ours that nobody can keep any more would otherwise end holdfast as if all were well.
process.once('beforeExit', () => void crashed(new Error('holdfast waits for something that can no longer come')))

void main(process.argv.slice(2))
  .catch(failed)
  .then((code) => (hasCrashed ? undefined : exit(code)))
