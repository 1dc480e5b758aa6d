/** Cancelled entries are thrown out when there are this many and they are the larger half. */
const PURGE_FROM = 256

/** Something that happens once, when its time comes. */
export interface Entry {
  readonly due: number
  /** Given by the agenda: of two that are due at the same time, the earlier one comes first. */
  sequence: number
  /** Null once it was cancelled or taken. */
  callback: (() => void) | null
}

/**
 * What is to happen, in the order of (time, sequence): a heap. What is cancelled stays in it, empty, until its turn
 * comes or too much of that has gathered: most deadlines are cancelled long before their time.
 */
export class Agenda<E extends Entry> {
  #heap: E[] = []
  #cancelled = 0
  #added = 0

  /** How many are still to come. */
  get size(): number {
    return this.#heap.length - this.#cancelled
  }

  /** How many were ever added; each entry's sequence is below what this is then. */
  get added(): number {
    return this.#added
  }

  add(entry: E): void {
    entry.sequence = this.#added++
    push(this.#heap, entry)
  }

  get first(): E | undefined {
    for (;;) {
      const entry = this.#heap[0]
      if (!entry || entry.callback) return entry
      pop(this.#heap)
      this.#cancelled--
    }
  }

  /** Removes the first one; gives what it calls. */
  take(): (() => void) | null {
    const entry = this.first
    if (!entry) return null
    pop(this.#heap)
    const { callback } = entry
    entry.callback = null
    return callback
  }

  /** False where it was taken or cancelled before. */
  cancel(entry: E): boolean {
    if (!entry.callback) return false
    entry.callback = null
    this.#cancelled++
    if (this.#cancelled >= PURGE_FROM && this.#cancelled * 2 >= this.#heap.length) this.#purge()
    return true
  }

  #purge(): void {
    const left = this.#heap.filter((entry) => entry.callback)
    this.#heap = []
    for (const entry of left) push(this.#heap, entry)
    this.#cancelled = 0
  }
}

const before = (a: Entry, b: Entry) => a.due < b.due || (a.due === b.due && a.sequence < b.sequence)

function push<E extends Entry>(heap: E[], entry: E): void {
  let at = heap.length
  heap.push(entry)
  while (at > 0) {
    const up = (at - 1) >> 1
    const parent = heap[up]
    if (!parent || before(parent, entry)) break
    heap[at] = parent
    at = up
  }
  heap[at] = entry
}

function pop<E extends Entry>(heap: E[]): E | undefined {
  const first = heap[0]
  const last = heap.pop()
  if (!first || !last || heap.length === 0) return first
  let at = 0
  for (;;) {
    let down = 2 * at + 1
    const left = heap[down]
    const right = heap[down + 1]
    if (!left) break
    if (right && before(right, left)) down++
    const child = heap[down]
    if (!child || before(last, child)) break
    heap[at] = child
    at = down
  }
  heap[at] = last
  return first
}
