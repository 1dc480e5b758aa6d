/** What a declaration file exports, values and types, by name; for the snapshot of the public interface. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readSource } from './source-text.js'

const DECLARED =
  /^export (?:default )?(?:declare )?(?:abstract )?(?:const|let|function|class|interface|type|enum|namespace) (\w+)/gm
const LISTED = /^export (type )?\{([^}]*)\}(?: from ['"](.*)['"])?/gm
const STAR = /^export (type )?\* (?:as (\w+) )?from ['"](.*)['"]/gm

export interface ExportedName {
  readonly name: string
  /** Gone after compilation. */
  readonly isType: boolean
}

export function exportedNames(declarationFile: string): ExportedName[] {
  const text = readSource(readFileSync(declarationFile, 'utf8')).withStrings
  const found: ExportedName[] = []
  for (const [statement, name = ''] of text.matchAll(DECLARED)) {
    found.push({ name, isType: / (?:interface|type) /.test(statement) })
  }
  for (const [, type, list = '', from] of text.matchAll(LISTED)) {
    for (const item of list.split(',').filter((each) => each.trim())) {
      const [, inlineType, original = '', renamed] = /^\s*(type )?(\w+)(?: as (\w+))?\s*$/.exec(item) ?? []
      const isType = Boolean(type ?? inlineType) || !isValue(declarationFile, text, original, from)
      found.push({ name: renamed ?? original, isType })
    }
  }
  for (const [, type, name, from = ''] of text.matchAll(STAR)) {
    const all = name ? [{ name, isType: false }] : exportedNames(resolved(declarationFile, from))
    found.push(...all.map((each) => (type ? { ...each, isType: true } : each)))
  }
  // An overloaded function is declared several times.
  const unique = new Map(found.map((each) => [each.name, each]))
  return [...unique.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

const resolved = (file: string, specifier: string) => join(dirname(file), specifier.replace(/\.js$/, '.d.ts'))

/** A name in a list without `type` may still be that of an interface. */
function isValue(file: string, text: string, name: string, from: string | undefined): boolean {
  if (from?.startsWith('.'))
    return !exportedNames(resolved(file, from)).some((each) => each.name === name && each.isType)
  return !new RegExp(`\\b(?:interface|type) ${name}\\b`).test(text)
}
