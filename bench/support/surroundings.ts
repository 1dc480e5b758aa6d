import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Surroundings {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

/** A folder with a lease file of its own; else what the shell has, since its variables are a part of what a start costs. */
export async function inFolder(work: (where: Surroundings) => Promise<void> | void): Promise<void> {
  const cwd = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  const { HOLDFAST_STORE: _, ...env } = process.env
  try {
    await work({ cwd, env: { ...env, HOME: cwd, XDG_STATE_HOME: cwd } })
  } finally {
    rmSync(cwd, { recursive: true })
  }
}
