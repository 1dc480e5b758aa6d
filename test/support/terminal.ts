/**
 * A real terminal with a real interactive shell: a tmux server of the test's own, on a socket in the folder of the bench.
 * What is typed goes through the kernel's terminal, as from a keyboard; what is seen is the screen.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterEach } from 'node:test'
import { type Bench, eventually, MAIN } from '../cli/support.js'

const has = (command: string) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0

/** With `CI` set nothing may be missing: the tests run, and fail where they cannot. */
export function needsCommands(...commands: string[]): { skip?: string } {
  const missing = commands.filter((each) => !has(each))
  return missing.length === 0 || process.env.CI ? {} : { skip: `needs ${missing.join(', ')}` }
}

const SOCKET = 'holdfast'
export const WITHIN_MS = 10_000
let opened = 0

export class Terminal {
  readonly name = `t${++opened}`
  readonly #cli: Bench
  readonly #env: NodeJS.ProcessEnv
  /** The shell writes the exit status of every command line here, just before it prompts again. */
  readonly #statuses: string
  #seen = 1

  constructor(cli: Bench, cells: { readonly columns: number; readonly rows: number }) {
    this.#cli = cli
    this.#statuses = join(cli.folder, `${this.name}.statuses`)
    const bin = join(cli.folder, 'bin')
    mkdirSync(bin, { recursive: true })
    writeFileSync(join(bin, 'holdfast'), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`)
    chmodSync(join(bin, 'holdfast'), 0o755)
    const rc = join(cli.folder, `${this.name}.rc`)
    writeFileSync(rc, `PS1='$ '\nunset HISTFILE\nPROMPT_COMMAND='echo $? >> "${this.#statuses}"'\n`)
    this.#env = cli.env({
      PATH: `${bin}${delimiter}${process.env.PATH}`,
      TMUX_TMPDIR: cli.folder,
      NODE: process.execPath,
      LC_ALL: 'C.UTF-8',
    })
    const size = ['-x', String(cells.columns), '-y', String(cells.rows)]
    this.#tmux(
      '-f',
      '/dev/null',
      'new-session',
      '-d',
      '-s',
      this.name,
      '-c',
      cli.folder,
      ...size,
      `exec bash --rcfile ${rc}`,
    )
  }

  #tmux(...args: string[]): string {
    return execFileSync('tmux', ['-L', SOCKET, ...args], { env: this.#env, encoding: 'utf8', stdio: 'pipe' })
  }

  type(text: string): void {
    this.#tmux('send-keys', '-t', this.name, '-l', text)
  }

  /** Keys by the names of tmux: `C-c`, `Escape`, `Enter`. */
  press(...keys: string[]): void {
    this.#tmux('send-keys', '-t', this.name, ...keys)
  }

  line(text: string): void {
    this.type(text)
    this.press('Enter')
  }

  screen(): string {
    return this.#tmux('capture-pane', '-p', '-t', this.name)
  }

  async sees(pattern: RegExp): Promise<void> {
    try {
      await eventually(`${pattern} on the screen`, () => pattern.test(this.screen()), WITHIN_MS)
    } catch (error) {
      throw new Error(`${(error as Error).message}:\n${this.screen()}`)
    }
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
    const file = join(this.#cli.folder, `${this.name}.modes`)
    await this.run(`stty -g > ${file}`)
    return readFileSync(file, 'utf8').trim()
  }

  resize(columns: number, rows: number): void {
    this.#tmux('resize-window', '-t', this.name, '-x', String(columns), '-y', String(rows))
  }

  /** What closing the window of a terminal does: everybody in it is hung up on. */
  close(): void {
    this.#tmux('kill-session', '-t', this.name)
  }

  /** Closes this terminal and every other of the bench. */
  end(): void {
    spawnSync('tmux', ['-L', SOCKET, 'kill-server'], { env: this.#env })
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
