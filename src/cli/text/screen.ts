/** The terminal behind stdout: its size, and a screen on it that is drawn again and again. */
import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { print } from './output.js'
import { cells } from './width.js'

/** `null` where there is no terminal, or one that does not know its size. */
export function terminalSize(): { readonly columns: number; readonly rows: number } | null {
  if (!isatty(1)) return null
  // Asked for its size only: a terminal that Node opens is one of its own, and nobody else's writes are touched.
  const { columns, rows } = process.stdout
  return columns > 0 && rows > 0 ? { columns, rows } : null
}

const ENTER = '\x1b[?1049h\x1b[?25l'
const LEAVE = '\x1b[?25h\x1b[?1049l'
const [HOME, CLEAR_LINE, CLEAR_BELOW] = ['\x1b[H', '\x1b[K', '\x1b[J']

/** The terminal's second screen, without a cursor; what stood on the first is there again afterwards, however we end. */
export class Screen {
  readonly #redraw: () => void
  #isOpen = false

  /** `redraw` is called when the terminal has another size, or is ours again. */
  constructor(redraw: () => void) {
    this.#redraw = redraw
    process.once('exit', () => this.close())
    process.on('SIGWINCH', redraw)
    process.on('SIGTSTP', () => {
      this.close()
      process.kill(process.pid, 'SIGSTOP')
    })
    process.on('SIGCONT', () => {
      this.open()
      this.#redraw()
    })
    this.open()
  }

  open(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    // At once, like what follows it: the order counts, and a terminal takes so little.
    writeSync(1, ENTER)
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    try {
      writeSync(1, LEAVE)
    } catch {
      // The terminal is gone: nothing is left to put in order.
    }
  }

  /** Over what is there, so that nothing flickers; what does not fit below is counted. */
  async draw(text: string): Promise<void> {
    const { columns, rows } = terminalSize() ?? { columns: 80, rows: 24 }
    const lines = text.trimEnd().split('\n')
    const height = (count: number) =>
      lines.slice(0, count).reduce((sum, line) => sum + Math.max(1, Math.ceil(cells(line) / columns)), 0)
    const all = lines.map((_, at) => at + 1)
    const fit = height(lines.length) <= rows ? lines.length : all.filter((count) => height(count) < rows).length
    const shown = fit < lines.length ? [...lines.slice(0, fit), `… and ${lines.length - fit} more`] : lines
    // After a line that ends in the last column the cursor is still on that column, and would clear it.
    const cleared = shown.map((line) => (cells(line) > 0 && cells(line) % columns === 0 ? line : line + CLEAR_LINE))
    if (this.#isOpen) await print(HOME + cleared.join('\n') + CLEAR_BELOW)
  }
}
