/** What of another host or user can be had on this machine; tests that need it are skipped visibly without. */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** With `CI` set nothing may be missing: the tests run, and fail where they cannot. */
export const needs = (isThere: boolean, reason: string): { skip?: string } =>
  isThere || process.env.CI ? {} : { skip: reason }

const canUnshare =
  process.platform === 'linux' && spawnSync('unshare', ['--mount', '--pid', '--fork', 'true']).status === 0
export const privileged = needs(canUnshare, 'needs Linux, and the right to make namespaces')

const faketimes = (): string | undefined => {
  const root = '/usr/lib'
  const folders = existsSync(root) ? readdirSync(root).map((folder) => join(root, folder, 'faketime')) : []
  return folders.map((folder) => join(folder, 'libfaketime.so.1')).find((path) => existsSync(path))
}
export const faketime = faketimes()
export const withFaketime = needs(faketime !== undefined, 'needs libfaketime')

const sshfsRuns =
  existsSync('/dev/fuse') &&
  existsSync('/usr/lib/openssh/sftp-server') &&
  spawnSync('sshfs', ['--version']).status === 0
export const withSshfs = {
  ...privileged,
  ...(canUnshare ? { skip: sshfsRuns ? false : 'needs sshfs, sftp-server and /dev/fuse' } : {}),
}

/** A folder and all in it, for every user: what people do who share a lease file between users. */
export function openToAll(folder: string): void {
  chmodSync(folder, 0o777)
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    if (statSync(path).isFile()) chmodSync(path, 0o666)
  }
}
