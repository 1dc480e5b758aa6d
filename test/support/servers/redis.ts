/** A real Redis server of the test's own: its data in a temporary folder, its port free on the loopback interface. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { needsCommands } from '../tmux.js'
import { type Certificates, makeCertificates } from './certificates.js'
import { freePort, type Launched, launch } from './launched.js'
import { type RawConnection, type RawOptions, type Reply, rawConnection } from './resp.js'
import { type SteppedClock, steppedClock } from './stepped-clock.js'

/** For the options of a suite: skipped visibly where the server is missing, and failed under `CI`. */
export const withRedis = needsCommands('redis-server')
export const withRedisTls = needsCommands('redis-server', 'openssl')
export const withRedisClock = needsCommands('redis-server', 'cc')

const STARTED_WITHIN_MS = 10_000

export interface RedisServerOptions {
  /** More of its command line: `['--appendonly', 'yes']`. */
  readonly args?: readonly string[]
  /** The default user's; `send` uses it then. */
  readonly password?: string
  /** Speaks TLS on a second port. Default `false`. */
  readonly tls?: boolean
  /** Its wall clock can be stepped. Default `false`. */
  readonly clock?: boolean
}

export interface StartOptions {
  /** Without the data of its life before. Default `false`. */
  readonly empty?: boolean
  /** In place of the `args` before, for this life and the next. */
  readonly args?: readonly string[]
  /** Does not wait until it has loaded its data. Default `false`. */
  readonly loading?: boolean
}

export class RedisServer {
  readonly port: number
  /** `undefined` without `tls`. */
  readonly tlsPort: number | undefined
  /** The authority that its clients have to trust, PEM; `undefined` without `tls`. */
  readonly ca: string | undefined
  /** Where its data is: the append-only file, the dump. */
  readonly folder: string
  readonly #home: string
  readonly #password: string | undefined
  readonly #certificates: Certificates | undefined
  readonly #clock: SteppedClock | undefined
  #args: readonly string[]
  #life: Launched | undefined

  constructor(home: string, ports: { port: number; tlsPort: number | undefined }, options: RedisServerOptions) {
    this.port = ports.port
    this.tlsPort = ports.tlsPort
    this.#home = home
    this.folder = join(home, 'data')
    this.#args = options.args ?? []
    this.#password = options.password
    this.#certificates = options.tls ? makeCertificates(home) : undefined
    this.ca = this.#certificates?.ca
    this.#clock = options.clock ? steppedClock(home) : undefined
  }

  /** Of this life; 0 when it is dead. */
  get pid(): number {
    return this.#life && !this.#life.exited ? this.#life.pid : 0
  }

  /** `redis://…`, or `rediss://localhost…` with `tls`. */
  url(part: { username?: string; password?: string; database?: number; tls?: boolean } = {}): string {
    const { username = '', password = this.#password, database, tls = false } = part
    const user = password === undefined ? '' : `${encodeURIComponent(username)}:${encodeURIComponent(password)}@`
    const where = tls ? `rediss://${user}localhost:${this.tlsPort}` : `redis://${user}127.0.0.1:${this.port}`
    return database === undefined ? where : `${where}/${database}`
  }

  /** One command on a connection of its own, as the default user. Rejects with the server's error text. */
  async send(...args: (string | number)[]): Promise<Reply> {
    const wire = await this.connection()
    try {
      return await wire.send(...args)
    } finally {
      wire.close()
    }
  }

  connection(options: Partial<RawOptions> = {}): Promise<RawConnection> {
    const password = this.#password === undefined ? {} : { password: this.#password }
    return rawConnection({ port: this.port, ...password, ...options })
  }

  /** Resolves when it answers. The same port and, unless `empty`, the data that its last life left. */
  async start({ empty = false, args, loading = false }: StartOptions = {}): Promise<void> {
    if (this.pid !== 0) throw new Error('the server is running already')
    if (empty) rmSync(this.folder, { recursive: true, force: true })
    mkdirSync(this.folder, { recursive: true })
    this.#args = args ?? this.#args
    const life = await launch('redis-server', this.#commandLine(), this.#clock?.env ?? {})
    this.#life = life
    const until = performance.now() + STARTED_WITHIN_MS
    for (;;) {
      // An error is an answer too: it wants a password, or has no right for PING.
      const answer = await this.send('PING').catch((error: Error) => error.message)
      if (life.exited) throw new Error(`redis-server ended: ${life.log()}`)
      if (/^(PONG|NOAUTH|NOPERM|WRONGPASS)/.test(`${answer}`)) return
      if (loading && /^LOADING/.test(`${answer}`)) return
      if (performance.now() > until) {
        await life.signal('SIGKILL')
        throw new Error(`redis-server did not answer within ${STARTED_WITHIN_MS} ms: ${answer}\n${life.log()}`)
      }
      await sleep(5)
    }
  }

  /** `SIGKILL`; resolves when it is dead. */
  async kill(): Promise<void> {
    await this.#life?.signal('SIGKILL')
  }

  /** `SIGTERM`: it writes what it is configured to write, and ends. */
  async stop(): Promise<void> {
    await this.#life?.signal('SIGTERM')
  }

  /** `SIGSTOP`: connections are accepted by the kernel, and nothing is answered. */
  pause(): void {
    this.#life?.pause()
  }

  resume(): void {
    this.#life?.resume()
  }

  /** Moves its wall clock from where it is now, for this life and the next. Needs the option `clock`. */
  stepClock(ms: number): void {
    if (!this.#clock) throw new Error('the server was made without the option clock')
    this.#clock.step(ms)
  }

  /** Kills it, and removes all that it left. Idempotent. */
  async end(): Promise<void> {
    await this.kill()
    this.#clock?.close()
    rmSync(this.#home, { recursive: true, force: true })
  }

  #commandLine(): string[] {
    const tls = this.#certificates
    return [
      ...['--port', `${this.port}`, '--bind', '127.0.0.1', '--dir', this.folder, '--save', ''],
      ...(this.#password === undefined ? [] : ['--requirepass', this.#password]),
      ...(tls
        ? [
            ...['--tls-port', `${this.tlsPort}`, '--tls-ca-cert-file', tls.caFile, '--tls-auth-clients', 'no'],
            ...['--tls-cert-file', tls.certFile, '--tls-key-file', tls.keyFile],
          ]
        : []),
      ...this.#args,
    ]
  }
}

/** Resolves when it answers. The caller ends it. */
export async function redisServer(options: RedisServerOptions = {}): Promise<RedisServer> {
  for (let attempt = 1; ; attempt++) {
    const ports = { port: await freePort(), tlsPort: options.tls ? await freePort() : undefined }
    const server = new RedisServer(mkdtempSync(join(tmpdir(), 'holdfast-redis-')), ports, options)
    try {
      await server.start()
      return server
    } catch (error) {
      await server.end()
      // Somebody else may have taken the port in between.
      if (attempt === 3 || !/in use/.test(`${error}`)) throw error
    }
  }
}

/** One that may grant at once: durable, with a counter that an earlier life of it left. */
export async function establishedRedis(): Promise<RedisServer> {
  const args = ['--appendonly', 'yes', '--appendfsync', 'always', '--no-appendfsync-on-rewrite', 'no']
  const server = await redisServer({ args })
  await server.send('SET', 'holdfast:fence', '1')
  await server.send('SET', 'holdfast:born', '0'.repeat(40))
  return server
}
