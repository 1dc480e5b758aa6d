import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../../../bench/peers', import.meta.url))
const manifest = join(folder, 'package.json')
const fromPeers = createRequire(manifest)

const { dependencies } = JSON.parse(readFileSync(manifest, 'utf8')) as { dependencies: Record<string, string> }

/** A module of a peer. Its types are not ours to check against: the bench compiles without the peers. */
export const load = <T>(name: string): T => fromPeers(name) as T

/** Installs the peers when one is missing. They are no dependency of holdfast, nor of its tests. */
export function installPeers(): void {
  if (Object.keys(dependencies).every((name) => existsSync(join(folder, 'node_modules', name)))) return
  const args = ['ci', '--prefix', folder, '--no-audit', '--no-fund']
  console.error('the peers to measure against are missing: npm ci --prefix bench/peers')
  const { status } = spawnSync('npm', args, { stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error(`npm ${args.join(' ')} ended with ${status}; to go without: --only raw,holdfast`)
}

/** `5.0.0-beta.2`, from `npm:redlock@5.0.0-beta.2` or itself. */
export const versionOf = (name: string): string => dependencies[name]?.replace(/^npm:.*@/, '') ?? ''
