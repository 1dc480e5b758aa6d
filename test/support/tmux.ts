/**
 * A real terminal: what runs in it, what is typed, what is on its screen. A tmux server of its own, so that keys go through
 * the kernel's terminal as from a keyboard.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { after } from 'node:test'
import { type Bench, eventually } from '../cli/support.js'

/** With `CI` set nothing may be missing: the tests run, and fail where they cannot. */
export function needsCommands(...commands: string[]): { skip?: string } {
  const missing = commands.filter((each) => spawnSync('sh', ['-c', `command -v ${each}`]).status !== 0)
  return missing.length === 0 || process.env.CI ? {} : { skip: `needs ${missing.join(', ')}` }
}

export const WITHIN_MS = 10_000

export interface Size {
  readonly columns: number
  readonly rows: number
}

export class Screen {
  readonly #socket: string
  readonly #env: NodeJS.ProcessEnv

  /** `command` is one line for a shell, and what runs in the terminal from its start. */
  constructor(
    cli: Bench,
    name: string,
    command: string,
    { columns, rows }: Size = { columns: 100, rows: 24 },
    env: NodeJS.ProcessEnv = {},
  ) {
    this.#socket = join(cli.folder, `${name}.tmux`)
    this.#env = cli.env({ TERM: 'xterm-256color', LC_ALL: 'C.UTF-8', ...env })
    this.#tmux('new-session', '-d', '-c', cli.folder, '-x', `${columns}`, '-y', `${rows}`, command)
    this.#tmux('set-option', '-g', 'remain-on-exit', 'on')
  }

  #tmux(...args: string[]): string {
    const flags = ['-u', '-f', '/dev/null', '-S', this.#socket]
    const { status, stdout, stderr } = spawnSync('tmux', [...flags, ...args], { env: this.#env, encoding: 'utf8' })
    assert.equal(status, 0, `tmux ${args.join(' ')}: ${stderr}`)
    return stdout
  }

  /** Keys by the names of tmux: `C-c`, `Escape`, `Enter`. */
  press(...keys: string[]): void {
    this.#tmux('send-keys', ...keys)
  }

  type(text: string): void {
    this.#tmux('send-keys', '-l', text)
  }

  resize(columns: number, rows: number): void {
    this.#tmux('resize-window', '-x', `${columns}`, '-y', `${rows}`)
  }

  /** Lines that were too long for it are whole again. */
  screen(): string {
    return this.#tmux('capture-pane', '-p', '-J')
  }

  /** As it stands there. */
  lines(): string[] {
    return this.#tmux('capture-pane', '-p').split('\n')
  }

  state(): { readonly secondScreen: boolean; readonly cursor: boolean } {
    const [secondScreen, cursor] = this.#tmux('display', '-p', '#{alternate_on} #{cursor_flag}').trim().split(' ')
    return { secondScreen: secondScreen === '1', cursor: cursor === '1' }
  }

  /** Waits until the screen matches, and gives it. */
  async sees(pattern: RegExp): Promise<string> {
    try {
      await eventually('', () => pattern.test(this.screen()), WITHIN_MS)
    } catch {
      throw new Error(`the terminal did not show ${pattern}:\n${this.screen()}`)
    }
    return this.screen()
  }

  /** What closing the window of a terminal does: everybody in it is hung up on. */
  close(): void {
    this.#tmux('kill-session')
  }

  end(): void {
    spawnSync('tmux', ['-S', this.#socket, 'kill-server'], { env: this.#env })
  }
}

/** One that is ended after the test that opens it. */
export function screen(...args: ConstructorParameters<typeof Screen>): Screen {
  const made = new Screen(...args)
  after(() => made.end())
  return made
}
