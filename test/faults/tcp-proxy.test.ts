import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import test, { afterEach, beforeEach } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type TcpProxy, tcpProxy } from '../../src/faults/index.js'

/** Long enough for anything on this machine to arrive that is going to. */
const QUIET_MS = 60

/** Answers every byte by its capital letter, and remembers what it got. */
class Echo {
  heard = ''
  readonly sockets = new Set<Socket>()
  readonly ends: string[] = []
  #server: Server | undefined
  #port = 0

  async start(): Promise<number> {
    this.#server = createServer((socket) => {
      this.sockets.add(socket)
      socket.on('data', (bytes) => {
        this.heard += `${bytes}`
        socket.write(`${bytes}`.toUpperCase())
      })
      socket.on('end', () => this.ends.push('end'))
      socket.on('error', () => this.ends.push('reset'))
      socket.on('close', () => this.sockets.delete(socket))
    }).listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
    return this.#port
  }

  async stop(): Promise<void> {
    const server = this.#server
    if (!server?.listening) return
    for (const each of this.sockets) each.destroy()
    server.close()
    await once(server, 'close')
  }
}

class Client {
  heard = ''
  over = ''
  readonly socket: Socket
  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1').setNoDelay(true)
    this.socket.on('data', (bytes) => {
      this.heard += `${bytes}`
    })
    this.socket.on('end', () => {
      this.over ||= 'end'
    })
    this.socket.on('error', (error: NodeJS.ErrnoException) => {
      this.over ||= error.code ?? 'error'
    })
  }
  say(text: string): void {
    this.socket.write(text)
  }
}

let echo: Echo
let proxy: TcpProxy
let clients: Client[]

beforeEach(async () => {
  echo = new Echo()
  proxy = await tcpProxy({ port: await echo.start() })
  clients = []
})

afterEach(async () => {
  for (const { socket } of clients) socket.destroy()
  await proxy.close()
  await proxy.close()
  await echo.stop()
})

const newClient = () => {
  const client = new Client(proxy.port)
  clients.push(client)
  return client
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (const end = performance.now() + 2000; !holds(); await sleep(2))
    if (performance.now() > end) assert.fail(`never: ${what}; heard ${clients.map((each) => each.heard)}`)
}

/** A client that has had one answer. */
async function talking(): Promise<Client> {
  const client = newClient()
  client.say('a')
  await until('the first answer', () => client.heard === 'A')
  return client
}

/** The proxy works for whoever comes now. */
async function assertServes(): Promise<void> {
  const client = newClient()
  client.say('z')
  await until('an answer on a new connection', () => client.heard === 'Z')
}

test('passes bytes and ends both ways, and counts them', async () => {
  const first = await talking()
  const second = await talking()
  first.say('bc')
  await until('both letters', () => first.heard === 'ABC')
  assert.deepEqual([proxy.open, proxy.counts.connections], [2, 2])
  assert.deepEqual([proxy.counts.requestBytes, proxy.counts.replyBytes], [4, 4])
  first.socket.end()
  await until('the end at the server', () => echo.ends.length === 1)
  await until('the end at the client', () => first.over === 'end')
  await until('one left', () => proxy.open === 1)
  for (const each of echo.sockets) each.resetAndDestroy()
  await until('the reset at the client', () => second.over === 'ECONNRESET')
  await until('none left', () => proxy.open === 0)
})

test('much at once arrives whole', async () => {
  const client = newClient()
  client.say('x'.repeat(3_000_000))
  await until('all', () => client.heard.length === 3_000_000)
  assert.ok(/^X+$/.test(client.heard))
})

test('hole: nothing either way, nobody is told; healed, what lost something stays dead and all else works', async () => {
  const talker = await talking()
  const silent = await talking()
  const told = await talking()
  proxy.hole()
  talker.say('b')
  const late = newClient()
  late.say('c')
  for (const each of [...echo.sockets].slice(2)) each.destroy()
  await sleep(QUIET_MS)
  assert.deepEqual([echo.heard, talker.heard, late.heard, told.over], ['aaa', 'A', '', ''])
  assert.deepEqual([proxy.counts.lostRequestBytes, proxy.open], [2, 4])
  proxy.heal()
  for (const each of [talker, late, silent]) each.say('d')
  await until('the one that lost nothing', () => silent.heard === 'AD')
  await assertServes()
  await sleep(QUIET_MS)
  assert.deepEqual([echo.heard, talker.heard, late.heard], ['aaadz', 'A', ''])
  assert.deepEqual([talker.over, late.over, told.over], ['', '', ''], 'and is not told')
})

test('hole: a client that leaves is not missed by the server', async () => {
  const client = await talking()
  proxy.hole()
  client.socket.destroy()
  await sleep(QUIET_MS)
  proxy.heal()
  await sleep(QUIET_MS)
  assert.deepEqual([echo.ends, echo.sockets.size], [[], 1])
})

test('loseReplies: the request arrives, on a new connection too, its reply never does', async () => {
  const client = await talking()
  proxy.loseReplies()
  client.say('b')
  newClient().say('c')
  await until('both requests', () => echo.heard.length === 3)
  client.say('d')
  await until('and the next', () => echo.heard.length === 4)
  await sleep(QUIET_MS)
  assert.deepEqual([client.heard, proxy.counts.lostReplyBytes], ['A', 3])
  proxy.heal()
  client.say('e')
  await assertServes()
  assert.deepEqual([client.heard, echo.heard.includes('e')], ['A', false])
})

test('a reply is never taken for that of another request: after a loss no later one passes, whatever the fault', async () => {
  const client = await talking()
  proxy.loseReplies()
  client.say('b')
  await until('the request', () => echo.heard === 'ab')
  proxy.delay(1)
  client.say('c')
  await sleep(QUIET_MS)
  assert.equal(client.heard, 'A')
})

test('loseRequests: nothing arrives; what the server says unasked does', async () => {
  const client = await talking()
  proxy.loseRequests()
  client.say('b')
  for (const each of echo.sockets) each.write('!')
  await until('what was said unasked', () => client.heard === 'A!')
  await sleep(QUIET_MS)
  assert.deepEqual([echo.heard, proxy.counts.lostRequestBytes], ['a', 1])
  proxy.heal()
  await assertServes()
})

test('hang: what was held up arrives at heal, in order, from whoever has left meanwhile too', async () => {
  const client = await talking()
  proxy.hang()
  client.say('b')
  client.say('c')
  const left = newClient()
  left.say('d')
  await sleep(QUIET_MS)
  left.socket.destroy()
  await sleep(QUIET_MS)
  assert.equal(echo.heard, 'a')
  proxy.heal()
  await until('all of it', () => client.heard === 'ABC' && /d/.test(echo.heard))
  await until('no more than one left', () => proxy.open === 1)
})

test('delay: each way, by as much as was said, in order', async () => {
  const client = await talking()
  for (const ms of [{ requests: 80 }, { replies: 80 }, { requests: 40, replies: 40 }]) {
    const [heard, replied] = [echo.heard, client.heard]
    const began = performance.now()
    proxy.delay(ms)
    client.say('b')
    await until('the request', () => echo.heard === `${heard}b`)
    const arrived = performance.now() - began
    await until('the reply', () => client.heard === `${replied}B`)
    const back = performance.now() - began
    assert.ok(arrived >= (ms.requests ?? 0), `the request took ${arrived} ms`)
    assert.ok(back >= 80 && back < 1000, `there and back took ${back} ms`)
  }
  proxy.delay(40)
  client.say('c')
  proxy.delay(0)
  client.say('d')
  await until('both', () => client.heard.endsWith('CD'))
})

test('a delayed request arrives when it is due although its client has left, and after heal', async () => {
  const client = await talking()
  proxy.delay({ requests: 150 })
  const began = performance.now()
  client.say('b')
  await sleep(20)
  client.socket.destroy()
  proxy.heal()
  await assertServes()
  await until('the late request', () => echo.heard.includes('b'))
  assert.ok(performance.now() - began >= 150)
  await until('the end after it', () => echo.ends.length > 0)
})

test('cut: every connection is reset at once, on both sides; new ones work', async () => {
  const client = await talking()
  proxy.delay(300)
  client.say('b')
  await sleep(20)
  proxy.cut()
  await until('the reset at the client', () => client.over === 'ECONNRESET')
  await until('the reset at the server', () => echo.ends.join() === 'reset')
  assert.equal(proxy.open, 0)
  proxy.heal()
  await assertServes()
  await sleep(350)
  assert.equal(echo.heard, 'az', 'what was under way is gone')
})

test('refuse: new connections are reset, the others go on', async () => {
  const client = await talking()
  proxy.refuse()
  const refused = newClient()
  await until('refused', () => refused.over === 'ECONNRESET')
  client.say('b')
  await until('an answer', () => client.heard === 'AB')
  assert.deepEqual([proxy.counts.refused, proxy.open], [1, 1])
  proxy.heal()
  await assertServes()
})

test('halfOpen: the server is gone, the client is not told', async () => {
  const client = await talking()
  proxy.halfOpen()
  await until('gone at the server', () => echo.sockets.size === 0)
  client.say('b')
  await assertServes()
  await sleep(QUIET_MS)
  assert.deepEqual([client.heard, client.over], ['A', ''])
})

test('a server that ends: the client is told, and with keepClients it is not, and has the next server', async () => {
  const told = await talking()
  await echo.stop()
  await until('told', () => told.over !== '')
  const refused = newClient()
  await until('nobody there', () => refused.over === 'ECONNRESET')
  await echo.start()

  proxy.keepClients()
  const kept = await talking()
  await echo.stop()
  await sleep(QUIET_MS)
  kept.say('b')
  await sleep(QUIET_MS)
  assert.deepEqual([kept.heard, kept.over], ['A', ''])
  await echo.start()
  await until('the next server', () => kept.heard === 'AB')
  kept.say('c')
  await until('and the same', () => kept.heard === 'ABC')
  assert.ok(proxy.counts.reconnections >= 1)

  proxy.keepClients(false)
  await echo.stop()
  await until('told again', () => kept.over !== '')
})

test('close: resets what there is, and nobody listens any more', async () => {
  const client = await talking()
  await proxy.close()
  await until('reset', () => client.over === 'ECONNRESET')
  const late = newClient()
  await until('refused', () => late.over === 'ECONNREFUSED')
})
