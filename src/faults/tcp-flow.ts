import type { Clock, Timer } from '../environment.js'

/** What travels in one direction of a connection. Its end travels like its bytes: late, held up, or lost. */
type Piece = Buffer | 'end' | 'reset'

/** What happens to it: it passes, `delayMs` late, or is lost, or lies in a buffer until something else is said. */
export interface Weather {
  readonly kind: 'pass' | 'lose' | 'hang'
  readonly delayMs: number
}

/** Where it goes; `null` while there is nothing to write to, and it waits. */
export type Sink = { write(bytes: Buffer): void; end(): void; reset(): void } | null

/** One direction of one connection: nothing is overtaken, whatever the weather. */
export class Flow {
  /** A byte or an end was lost: all that follows is lost too, as TCP never leaves a gap. */
  spoiled = false
  readonly #clock: Clock
  readonly #weather: () => Weather
  readonly #sink: () => Sink
  readonly #count: (what: 'passed' | 'lost', bytes: number) => void
  readonly #queue: { readonly piece: Piece; readonly due: number }[] = []
  #timer: Timer | undefined

  constructor(
    clock: Clock,
    weather: () => Weather,
    sink: () => Sink,
    count: (what: 'passed' | 'lost', bytes: number) => void,
  ) {
    this.#clock = clock
    this.#weather = weather
    this.#sink = sink
    this.#count = count
  }

  push(piece: Piece): void {
    const { delayMs } = this.#weather()
    this.#queue.push({ piece, due: delayMs > 0 ? this.#clock.now() + delayMs : Number.NEGATIVE_INFINITY })
    this.pump()
  }

  /** Delivers what can be delivered now; to be called when the weather or the sink has changed. */
  pump(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    for (let first = this.#queue[0]; first; first = this.#queue[0]) {
      const kind = this.spoiled ? 'lose' : this.#weather().kind
      if (kind === 'lose') this.#lose(first.piece)
      else {
        const sink = this.#sink()
        if (kind === 'hang' || !sink) return
        const early = first.due - this.#clock.now()
        if (early > 0) {
          this.#timer = this.#clock.timer(early, () => this.pump(), { keepAlive: true })
          return
        }
        this.#deliver(first.piece, sink)
      }
      this.#queue.shift()
    }
  }

  get empty(): boolean {
    return this.#queue.length === 0
  }

  /** Forgets what is under way. */
  stop(): void {
    this.#timer?.cancel()
    this.#queue.length = 0
  }

  #lose(piece: Piece): void {
    this.spoiled = true
    this.#count('lost', typeof piece === 'string' ? 0 : piece.length)
  }

  #deliver(piece: Piece, sink: NonNullable<Sink>): void {
    if (piece === 'end') sink.end()
    else if (piece === 'reset') sink.reset()
    else {
      this.#count('passed', piece.length)
      sink.write(piece)
    }
  }
}
