import { spawnSync } from 'node:child_process'
import { cpus } from 'node:os'

/** Puts processes, with all their threads, on the first core, or back on all. False where `taskset` is missing. */
export function pin(pids: readonly number[], where: 'one core' | 'all cores'): boolean {
  const list = where === 'one core' ? '0' : `0-${cpus().length - 1}`
  return pids.every((pid) => spawnSync('taskset', ['-acp', list, `${pid}`]).status === 0)
}
