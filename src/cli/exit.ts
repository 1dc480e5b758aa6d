import { constants } from 'node:os'
import { LeaseError, StoreError, StoreUnsafeError } from '../errors.js'

/** Exit codes: sysexits where one fits, shell customs for commands and signals. `docs/cli.md` explains each. */
export const EXIT = {
  ok: 0,
  /** A definite no: the key is free. */
  no: 1,
  usage: 64,
  unavailable: 69,
  /** A fault of holdfast itself. */
  software: 70,
  /** Data could not be written to stdout. */
  output: 74,
  /** Held by another, or the store is not ready in time. */
  held: 75,
  lost: 76,
  unsafe: 78,
  notExecutable: 126,
  notFound: 127,
} as const

/** What a shell reports for a process that signal `number` ended. */
export const exitOfSignal = (number: number): number => 128 + number

/** `SIGTERM` for 15. */
export const nameOfSignal = (number: number): string =>
  Object.entries(constants.signals).find(([, each]) => each === number)?.[0] ?? `signal ${number}`

/** An error that already knows its exit code; its message is one line that says what to do next. */
export class CliError extends Error {
  readonly exitCode: number
  constructor(message: string, options: ErrorOptions & { readonly exitCode: number }) {
    super(message, options)
    this.name = 'CliError'
    this.exitCode = options.exitCode
  }
}

export const usageError = (message: string, options: ErrorOptions = {}): CliError =>
  new CliError(message, { ...options, exitCode: EXIT.usage })

const BY_CODE: Record<string, number> = {
  ERR_LEASE_HELD: EXIT.held,
  ERR_LEASE_NOT_READY: EXIT.held,
  ERR_LEASE_UNAVAILABLE: EXIT.unavailable,
  ERR_LEASE_LOST: EXIT.lost,
  ERR_LEASE_UNSAFE: EXIT.unsafe,
  ERR_LEASE_UNSUPPORTED: EXIT.usage,
}

/** Our working folder was removed under us: every relative path has lost its meaning. */
export const isAdrift = (error: unknown): boolean =>
  error instanceof Error && (error as NodeJS.ErrnoException).syscall === 'uv_cwd'

/** The one place where errors become exit codes; `null` for what nobody expected. */
export function exitCodeOf(error: unknown): number | null {
  if (error instanceof CliError) return error.exitCode
  if (isAdrift(error)) return EXIT.usage
  if (error instanceof StoreUnsafeError) return EXIT.unsafe
  if (error instanceof StoreError) return EXIT.unavailable
  return error instanceof LeaseError ? (BY_CODE[error.code] ?? null) : null
}
