import { Redis } from 'ioredis'

/** Everyone gets a client of the same version, with the defaults of the library. */
export async function connect(port: number): Promise<Redis> {
  const redis = new Redis({ port, host: '127.0.0.1', lazyConnect: true })
  await redis.connect()
  return redis
}
