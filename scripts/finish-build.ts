/**
 * What `tsc` leaves to do: it never removes the output of a source file that is gone, so a deleted test would go on
 * running; it makes of the command neither one file nor an executable one; and it writes no manual page.
 */
import { chmodSync, existsSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { manualPage } from '../src/cli/man.js'
import { bundle } from './bundle.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** `src/index.d.ts` and `src/index.js` come from `src/index.ts`. */
const sourceOf = (output: string) => output.replace(/(\.d\.ts|\.js)$/, '.ts')

/** Removes every output below `dist/<folder>` without a source, then the folders that this empties. */
function sweep(folder: string): void {
  const built = join(root, 'dist', folder)
  for (const entry of readdirSync(built, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) sweep(path)
    else if (!existsSync(join(root, sourceOf(path)))) rmSync(join(root, 'dist', path))
  }
  if (readdirSync(built).length === 0) rmdirSync(built)
}

const { bin, man, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  bin: Record<string, string>
  man: string
  version: string
}

sweep('.')
await bundle(root)
for (const file of Object.values(bin)) chmodSync(join(root, file), 0o755)
writeFileSync(join(root, man), manualPage(version))
