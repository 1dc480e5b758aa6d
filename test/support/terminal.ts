/** A real terminal with a real interactive shell, that says how each command line ended. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterEach } from 'node:test'
import { type Bench, eventually, MAIN } from '../cli/support.js'
import { Screen, type Size, WITHIN_MS } from './tmux.js'

let opened = 0

export class Terminal extends Screen {
  readonly #cli: Bench
  readonly #name: string
  /** The shell writes the exit status of every command line here, just before it prompts again. */
  readonly #statuses: string
  #seen = 1

  constructor(cli: Bench, size: Size) {
    const name = `t${++opened}`
    const path = (suffix: string) => join(cli.folder, `${name}.${suffix}`)
    const bin = join(cli.folder, 'bin')
    mkdirSync(bin, { recursive: true })
    writeFileSync(join(bin, 'holdfast'), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`)
    chmodSync(join(bin, 'holdfast'), 0o755)
    writeFileSync(path('rc'), `PS1='$ '\nunset HISTFILE\nPROMPT_COMMAND='echo $? >> "${path('statuses')}"'\n`)
    const env = { PATH: `${bin}${delimiter}${process.env.PATH}`, NODE: process.execPath }
    super(cli, name, `exec bash --rcfile ${path('rc')}`, size, env)
    this.#cli = cli
    this.#name = name
    this.#statuses = path('statuses')
  }

  line(text: string): void {
    this.type(text)
    this.press('Enter')
  }

  #prompts(): string[] {
    return existsSync(this.#statuses) ? readFileSync(this.#statuses, 'utf8').split('\n').slice(0, -1) : []
  }

  /** Waits for the next prompt, and gives the exit status that the shell knows then. */
  async prompt(): Promise<number> {
    const wanted = this.#seen++
    try {
      await eventually(`prompt ${wanted}`, () => this.#prompts().length >= wanted, WITHIN_MS)
    } catch (error) {
      throw new Error(`${(error as Error).message}:\n${this.screen()}`)
    }
    return Number(this.#prompts()[wanted - 1])
  }

  /** Types a command line, waits for the prompt after it, and gives its exit status. */
  run(line: string): Promise<number> {
    this.line(line)
    return this.prompt()
  }

  /** Every mode of the terminal, in the words of `stty -g`, as a program in the foreground sees them. */
  async modes(): Promise<string> {
    const file = join(this.#cli.folder, `${this.#name}.modes`)
    await this.run(`stty -g > ${file}`)
    return readFileSync(file, 'utf8').trim()
  }
}

/** Everything alive whose home is the folder of the bench, by pid and name; the tmux server is not meant. */
export function inhabitants(cli: Bench): string[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
        const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'))
        const isZombie = stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z')
        const isOurs = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`HOME=${cli.folder}`)
        return isOurs && !isZombie && !name.startsWith('tmux') ? [`${pid} ${name}`] : []
      } catch {
        return []
      }
    })
}

/**
 * Gives terminals on a bench. After each test they are closed, and then nobody may be left of all that ran on the bench.
 */
export function terminals(cli: Bench): (columns?: number, rows?: number) => Promise<Terminal> {
  let open: Terminal[] = []
  afterEach(async () => {
    for (const each of open) each.end()
    open = []
    await eventually('nobody is left', () => inhabitants(cli).length === 0).catch(() => {
      const left = inhabitants(cli)
      for (const each of left) process.kill(Number.parseInt(each, 10), 'SIGKILL')
      throw new Error(`left behind after its terminal was closed: ${left.join(', ')}`)
    })
  })
  return async (columns = 100, rows = 30) => {
    const made = new Terminal(cli, { columns, rows })
    open.push(made)
    await made.prompt()
    return made
  }
}
