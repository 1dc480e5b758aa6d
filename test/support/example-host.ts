/**
 * A host of its own for an example that names absolute paths: a mount and pid namespace where `/usr/local/bin` and
 * `/var/lib/holdfast` are folders of the test. The holdfast there is the built command; the jobs are the test's.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Bench, MAIN, type Running } from '../cli/support.js'

export const example = (name: string): string => fileURLToPath(new URL(`../../../examples/${name}`, import.meta.url))
export const exampleText = (name: string): string => readFileSync(example(name), 'utf8')

const LOCAL_BIN = '/usr/local/bin'

export class ExampleHost {
  readonly #cli: Bench
  readonly folder: string
  readonly store: string

  constructor(cli: Bench, name: string) {
    this.#cli = cli
    this.folder = join(cli.folder, name)
    for (const each of ['bin', 'old-bin', 'var-lib/holdfast']) mkdirSync(join(this.folder, each), { recursive: true })
    this.store = `sqlite:${join(this.folder, 'var-lib/holdfast/leases.db')}`
    this.command('holdfast', `exec "${this.#visible(process.execPath)}" "${MAIN}" "$@"`)
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  text(name: string): string {
    return existsSync(this.path(name)) ? readFileSync(this.path(name), 'utf8') : ''
  }

  write(name: string, text: string): void {
    writeFileSync(this.path(name), text)
  }

  /** A program of this host, in /usr/local/bin; `$D` is the folder. */
  command(name: string, script: string): void {
    writeFileSync(join(this.folder, 'bin', name), `#!/bin/sh\nD='${this.folder}'\n${script}\n`, { mode: 0o755 })
  }

  /** What the host has in /usr/local/bin itself, Node perhaps, is found elsewhere here. */
  #visible(path: string): string {
    return path.startsWith(`${LOCAL_BIN}/`) ? join(this.folder, 'old-bin', path.slice(LOCAL_BIN.length)) : path
  }

  /** Runs a shell script there; what it starts dies with it. */
  start(script: string): Running {
    const setUp = [
      'set -e',
      `mount --bind ${LOCAL_BIN} "$D/old-bin"`,
      `mount --bind "$D/bin" ${LOCAL_BIN}`,
      'mount --bind "$D/var-lib" /var/lib',
    ].join('\n')
    const args = ['--mount', '--pid', '--fork', '--mount-proc', '--kill-child', 'sh', '-c', `${setUp}\n${script}`]
    return this.#cli.spawn('unshare', args, { env: { D: this.folder } })
  }
}

/** Reads YAML with PyYAML, as strict as Kubernetes: a key that is given twice is an error. */
export function parseYaml(text: string): unknown {
  const script = `
import json, sys, yaml
class Strict(yaml.SafeLoader):
    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if len(set(map(str, keys))) < len(keys): raise SystemExit('a key is given twice: %s' % keys)
        return super().construct_mapping(node, deep)
print(json.dumps(yaml.load(sys.stdin, Strict)))`
  const { status, stdout, stderr } = spawnSync(python ?? 'python3', ['-c', script], { input: text, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return JSON.parse(stdout)
}

const python = ['python3', '/usr/bin/python3'].find((each) => spawnSync(each, ['-c', 'import yaml']).status === 0)
export const withYaml = python || process.env.CI ? {} : { skip: 'needs python3-yaml' }
