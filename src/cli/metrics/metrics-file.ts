import { closeSync, openSync, readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { systemEnvironment } from '../../environment.js'
import type { Observe } from '../../events.js'
import { CliError, EXIT, usageError } from '../exit.js'
import type { Outcome } from '../run/report.js'
import { say } from '../text/output.js'
import { RunMetrics } from './run-metrics.js'
import { parse, textOf, type Values } from './textfile.js'

const SUFFIX = '.prom'
/** Mistakes of whoever named the file. A full disk, for one, is none: that must not keep a job from running. */
const MISTAKES = ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS', 'ELOOP', 'ENAMETOOLONG']

export interface MetricsFile {
  readonly observe: Observe
  /** However the run went. What fails here is said, and changes nothing. */
  write(outcome: Outcome, exitCode: number): void
}

/**
 * How a run goes, for node_exporter's textfile collector.
 * @throws a usage error where the file could not be written.
 */
export function metricsFile(given: string, key: string): MetricsFile {
  const path = checked(given)
  const metrics = new RunMetrics({ file: basename(path, SUFFIX), key }, systemEnvironment().clock)
  return {
    observe: (event) => metrics.seen(event),
    write: (outcome, exitCode) => {
      // Refused before anything was asked of a store: no run.
      if (outcome === 'usage') return
      const how = outcome === 'completed' && exitCode !== EXIT.ok ? 'failed' : outcome
      try {
        replace(path, textOf(metrics.families(how, exitCode, readBefore(path))))
      } catch (error) {
        say(`could not write the metrics into ${quote(given)} (${codeOf(error)}): this run is not counted there`)
      }
    },
  }
}

/** @throws a usage error, before anything is asked of a store. */
function checked(given: string): string {
  const path = resolve(given)
  if (!given.endsWith(SUFFIX) || basename(path) === SUFFIX) {
    throw usageError(
      `--metrics-file must end in ${SUFFIX}, since node_exporter reads no other file, but got ${quote(given)}`,
    )
  }
  try {
    const there = statSync(path, { throwIfNoEntry: false })
    if (there && !there.isFile()) throw usageError(`--metrics-file must name a file, but ${quote(given)} is none`)
    unlinkSync(newFile(dirname(path), ''))
  } catch (error) {
    if (error instanceof CliError) throw error
    const code = codeOf(error)
    if (!MISTAKES.includes(code)) return path
    throw usageError(
      `--metrics-file ${quote(given)} cannot be written: its folder must exist and let you make files (${code})`,
      { cause: error },
    )
  }
  return path
}

/** The counts so far. They are for looking at: where they cannot be read, counting begins anew. */
function readBefore(path: string): Values {
  const anew = (why: string): Values => {
    say(`could not read the counts in ${quote(path)} (${why}): they begin at 0 again`)
    return new Map()
  }
  try {
    return parse(readFileSync(path, 'utf8')) ?? anew('it is damaged, or was not written by holdfast')
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? new Map() : anew(codeOf(error))
  }
}

/** A reader sees the old text or the new, whole. */
function replace(path: string, text: string): void {
  const temporary = newFile(dirname(path), text)
  try {
    renameSync(temporary, path)
  } catch (error) {
    unlinkSync(temporary)
    throw error
  }
}

/** In the same folder, by a name that no collector reads. For all to read, since an exporter has a user of its own. */
function newFile(folder: string, text: string): string {
  const path = join(folder, `.holdfast-${systemEnvironment().random.id()}.tmp`)
  const file = openSync(path, 'wx', 0o644)
  try {
    writeFileSync(file, text)
  } catch (error) {
    unlinkSync(path)
    throw error
  } finally {
    closeSync(file)
  }
  return path
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error)
const quote = (text: string): string => JSON.stringify(text)
