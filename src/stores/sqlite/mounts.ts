/** Which file system a path is on, and whether locks and shared memory on it can be trusted. Pure. */

/**
 * File systems that several machines can reach: SQLite's locks and the shared memory of its WAL do not hold there, and
 * two machines share no clock. `9p`, `virtiofs` and the like share a folder of the host with a virtual machine.
 */
const NETWORK = new Set([
  ...[
    'nfs',
    'nfs4',
    'cifs',
    'smb3',
    'smbfs',
    'ncpfs',
    '9p',
    'virtiofs',
    'vboxsf',
    'prl_fs',
    'vmhgfs',
    'afs',
    'coda',
    'davfs',
  ],
  ...['ceph', 'glusterfs', 'lustre', 'gpfs', 'beegfs', 'orangefs', 'pvfs2', 'gfs2', 'ocfs2', 'wekafs', 'panfs'],
])
const NETWORK_FUSE =
  /^fuse\.(sshfs|glusterfs|ceph|nfs|smb|cifs|davfs|rclone|s3fs|gcsfuse|goofys|geesefs|juicefs|mount-s3|blobfuse|curlftpfs|seaweedfs|moosefs|mfs|lizardfs|vmhgfs|portal)/

export const isNetwork = (type: string): boolean => NETWORK.has(type) || NETWORK_FUSE.test(type)

/** Magic numbers of `statfs`, for where the list of mounts cannot be read. A FUSE file system does not tell its kind. */
const MAGIC: Record<number, string> = {
  0x6969: 'nfs',
  0x517b: 'smbfs',
  0xff534d42: 'cifs',
  0xfe534d42: 'smb3',
  0x564c: 'ncpfs',
  0x01021997: '9p',
  0x6a656a63: 'virtiofs',
  0x786f4256: 'vboxsf',
  0x5346414f: 'afs',
  0x73757245: 'coda',
  0x00c36400: 'ceph',
  0x0bd00bd0: 'lustre',
  0x47504653: 'gpfs',
  0x19830326: 'beegfs',
  0x01161970: 'gfs2',
  0x7461636f: 'ocfs2',
}

export const typeOfMagic = (magic: number): string | null => MAGIC[magic >>> 0] ?? null

/** Spaces and the like are written as octal escapes. */
const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

export interface Mount {
  /** Where it is mounted; the path itself when a single file is. */
  readonly point: string
  readonly type: string
}

/**
 * The mount that `path` (absolute, without symbolic links) is on: the one whose mount point is the longest prefix, and of
 * several at one point the last, which covers the others. `null` when the text does not tell.
 */
export function mountOf(path: string, mountinfo: string): Mount | null {
  let best: Mount | null = null
  for (const line of mountinfo.split('\n')) {
    const [left, right] = line.split(' - ')
    const escaped = left?.split(' ')[4]
    const type = right?.split(' ')[0]
    if (!escaped || !type) continue
    const point = unescaped(escaped)
    const covers = point === '/' || path === point || path.startsWith(`${point}/`)
    if (covers && point.length >= (best?.point.length ?? 0)) best = { point, type }
  }
  return best
}
