/**
 * A stream of which every byte is known, through pipes that the shell made:
 * `node stream.js write BYTES | … | node stream.js check BYTES`, and between the two `node stream.js copy REPORT`, which
 * writes down how long the copying took. All with blocking calls: a pipe that somebody made non-blocking is an error.
 */
import { readSync, writeFileSync, writeSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const STREAM = fileURLToPath(import.meta.url)

/** No multiple of any buffer's size, so that nothing lost or repeated lines up with what is expected. */
const BLOCK = 1_048_573
/** As much as a pipe holds. */
const PIPE = 65_536

/** Noise, and in front the number of the block: no two blocks are the same. */
function firstBlock(): Buffer {
  const block = Buffer.alloc(BLOCK)
  let state = 42
  for (let at = 0; at < BLOCK; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    block[at] = state >>> 24
  }
  return block
}

function* blocks(bytes: number): Generator<Buffer> {
  const block = firstBlock()
  for (let sent = 0; sent < bytes; sent += BLOCK) {
    block.writeDoubleLE(sent)
    yield block.subarray(0, Math.min(BLOCK, bytes - sent))
  }
}

function writeAll(bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at)
}

function write(bytes: number): void {
  for (const block of blocks(bytes)) writeAll(block)
}

/** The clock starts with the first byte: how long it takes until there is one is another question. */
function copy(report: string): void {
  const buffer = Buffer.alloc(PIPE)
  let began: bigint | null = null
  for (let length = readSync(0, buffer); length > 0; length = readSync(0, buffer)) {
    began ??= process.hrtime.bigint()
    writeAll(buffer.subarray(0, length))
  }
  writeFileSync(report, String(Number(process.hrtime.bigint() - (began ?? 0n)) / 1e9))
}

function check(bytes: number): void {
  const buffer = Buffer.alloc(PIPE)
  let seen = 0
  for (const block of blocks(bytes)) {
    for (let at = 0; at < block.length; ) {
      const length = readSync(0, buffer, 0, Math.min(PIPE, block.length - at), null)
      if (length === 0) throw new Error(`ended after ${seen} of ${bytes} bytes`)
      if (buffer.compare(block, at, at + length, 0, length) !== 0) throw new Error(`differs after ${seen} bytes`)
      at += length
      seen += length
    }
  }
  if (readSync(0, buffer) > 0) throw new Error(`goes on after ${bytes} bytes`)
  process.stdout.write(`${seen} bytes unchanged\n`)
}

if (process.argv[1] === STREAM) {
  const [mode, argument = ''] = process.argv.slice(2)
  if (mode === 'write') write(Number(argument))
  else if (mode === 'copy') copy(argument)
  else check(Number(argument))
}
