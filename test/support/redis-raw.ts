/** Asks the server itself, without any code of the store: what it has for a key now. */
import type { Key } from '../../src/store.js'
import type { RedisServer } from './servers/redis.js'

export const rawKey = ({ namespace, name }: Key, prefix = 'holdfast'): string => {
  const escaped = (text: string, special: RegExp) =>
    text.replace(special, (character) => `%${Buffer.from(character).toString('hex').toUpperCase()}`)
  return `${prefix}:lease:${escaped(namespace, /[%{}:]/g)}:${escaped(name, /[%{}]/g)}`
}

export async function rawLease(server: RedisServer, key: Key) {
  const value = await server.send('GET', rawKey(key))
  if (value === null) return null
  const [magic, owner, fence, state] = String(value).split(' ')
  if (magic !== 'hf1' || owner === undefined) throw new Error(`no lease: ${String(value)}`)
  return { owner: state === 'k' ? null : owner, fence: BigInt(fence ?? '') }
}
