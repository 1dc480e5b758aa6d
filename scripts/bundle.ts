/**
 * The command as it ships: one CommonJS file for each program, with everything of ours that it needs, which Node loads much
 * sooner than the compiler's output, file by file (`npm run bench start-up`). It is made from that output, not from the
 * sources, so there is one compiler.
 */
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

/** As deep as `dist/src/cli`: what a module finds relative to its own place (package.json), it finds from here too. */
const FOLDER = 'dist/bundle/cli'

export async function bundle(root: string): Promise<void> {
  const compiled = join(root, 'dist/src/cli')
  // A program that another one starts (`new URL('./name-main.js', import.meta.url)`) lies beside it, here as there.
  const programs = readdirSync(compiled).filter((file) => /(?:^|-)main\.js$/.test(file))
  await build({
    absWorkingDir: root,
    entryPoints: programs.map((file) => join(compiled, file)),
    outdir: FOLDER,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20.19',
    define: { 'import.meta.url': 'importMetaUrl' },
    banner: { js: `'use strict'\nconst importMetaUrl = require('node:url').pathToFileURL(__filename).href` },
    // Less to read for Node. Names stay, and lines are short: a stack trace can still be followed.
    minifyWhitespace: true,
    lineLimit: 120,
    logLevel: 'warning',
  })
  // The package as a whole is of the other kind.
  writeFileSync(join(root, FOLDER, 'package.json'), '{ "type": "commonjs" }\n')
}
