/**
 * The file itself: created privately, and refused where locks do not hold or where it could have two logs. Nothing here
 * opens an existing database file: closing any descriptor of it would drop the locks that SQLite holds for this process.
 */
import { closeSync, fsyncSync, lstatSync, openSync, readFileSync, realpathSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { StoreError, StoreUnsafeError } from '../../errors.js'
import { refuseLinks } from './identity.js'
import { isNetwork, type Mount, mountOf, typeOfMagic } from './mounts.js'
import { COMPANIONS, explain, refuseLength, refuseNowhere } from './paths.js'

/**
 * The real path of the lease file, created where `create`; `null` where there certainly is none. Throws what a person
 * can act on, before SQLite touches anything.
 */
export function locate(path: string, create: boolean): string | null {
  try {
    refuseLength(path)
    if (!statSync(path, { throwIfNoEntry: false })) {
      refuseNowhere(path)
      if (!create) return null
      createFile(path)
    }
    refuseOther(path)
    const real = realpathSync(path)
    refuseLength(real)
    refuseSecondLog(path, real)
    return real
  } catch (error) {
    throw explain(error, path)
  }
}

/** Only for its owner, before SQLite sees it: SQLite would create it for everyone, and gives its companions the same mode. */
function createFile(path: string): void {
  const folder = dirname(path)
  const real = realpathSync(folder)
  refuseNetwork(real, mountOf(real, mounts()))
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return
  }
  // The name, too, must survive a power cut, or the fence counter would begin anew. Not every system can.
  try {
    const descriptor = openSync(folder, 'r')
    fsyncSync(descriptor)
    closeSync(descriptor)
  } catch {}
}

/** Devices, pipes and sockets: SQLite opens and locks them, and leaves a journal beside them. */
function refuseOther(path: string): void {
  const stat = statSync(path)
  if (stat.isDirectory()) throw new StoreError(`${path} is a folder; the SQLite store needs the path of a file`, 'none')
  if (!stat.isFile()) throw new StoreError(`${path} is not a regular file; the SQLite store needs one`, 'none')
}

/** Whatever makes that others, by another name, use the same file with another log. */
function refuseSecondLog(path: string, real: string): void {
  const [own, led] = [lstatSync(real, { bigint: true }), statSync(path, { bigint: true })]
  if (own.ino !== led.ino || own.dev !== led.dev)
    throw new StoreError(`${path} does not lead to ${real}: it was replaced meanwhile, or is no valid UTF-8`, 'none')
  refuseLinks(own, real)
  for (const end of COMPANIONS) {
    const beside = lstatSync(real + end, { throwIfNoEntry: false })
    if (beside && !beside.isFile())
      throw new StoreError(`${real}${end} is not a regular file, and the SQLite store needs that name`, 'none')
  }
  const known = mounts()
  const mount = mountOf(real, known)
  refuseNetwork(real, mount)
  const mounted = [real, ...COMPANIONS.map((end) => real + end)].find((one) => mountOf(one, known)?.point === one)
  const alone = mount === null && own.dev !== statSync(dirname(real), { bigint: true }).dev
  if (mounted === undefined && !alone) return
  throw new StoreUnsafeError(
    `${mounted ?? real} is a mount of its own, so that those who use the file by its other name would not see its leases; mount the whole folder instead`,
  )
}

/** Empty where the system does not tell. */
function mounts(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return ''
  }
}

function refuseNetwork(real: string, mount: Mount | null): void {
  const types = [mount?.type ?? null, magicType(real)]
  const type = types.find((one) => one !== null && isNetwork(one))
  if (type === undefined) return
  throw new StoreUnsafeError(
    `${real} is on a network file system (${type}), where the locks of SQLite do not hold; use a path on a local disk, or a store made for several hosts`,
  )
}

function magicType(real: string): string | null {
  try {
    return typeOfMagic(statfsSync(real).type)
  } catch {
    return null
  }
}
