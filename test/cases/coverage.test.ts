import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))
/** Where cases are cited; this file names some that do not exist. */
const FOLDERS = ['test', 'src']
const SELF = 'test/cases/coverage.test.ts'

type Files = ReadonlyMap<string, string>

/** What is wrong between the list of cases and the files that cite them. */
function problems(page: string, files: Files): string[] {
  const found: string[] = []
  const listed = new Set<string>()
  for (const [, number = '', where = ''] of page.matchAll(/^\| (B\d{3}) \|[^|]*\|[^|]*\|([^|]*)\|$/gm)) {
    if (listed.has(number)) found.push(`${number} is listed twice`)
    listed.add(number)
    for (const [, path = ''] of where.matchAll(/`((?:test|src)\/[^`]+)`/g)) {
      const text = files.get(path)
      if (text === undefined) found.push(`${number}: there is no ${path}`)
      // In a string: the name of a test or a check, not a remark.
      else if (!new RegExp(`['"\`][^'"\`\\n]*${number}`).test(text)) found.push(`${number}: ${path} does not cite it`)
    }
  }
  for (const [path, text] of files) {
    const unlisted = new Set((text.match(/\bB\d{3}\b/g) ?? []).filter((number) => !listed.has(number)))
    for (const number of unlisted) found.push(`${number} is cited in ${path}, but not listed`)
  }
  return found
}

test('every case that docs/cases.md lists is cited where it says, and every one that is cited is listed', () => {
  const paths = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => `${folder}/${path}`),
  ).filter((path) => path !== SELF)
  const files = new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]))
  const page = readFileSync(join(root, 'docs/cases.md'), 'utf8')
  assert.deepEqual(problems(page, files), [])
  assert.ok((page.match(/^\| B\d{3} /gm) ?? []).length >= 110)
})

test('the check finds a missing file, a case that is not cited, one that is not listed and one that is listed twice', () => {
  const row = (number: string, path: string) => `| ${number} | x#1 | LOSS | \`${path}\` |\n`
  const page =
    row('B001', 'test/a.ts') + row('B002', 'test/gone.ts') + row('B003', 'test/a.ts') + row('B003', 'test/a.ts')
  assert.deepEqual(problems(page, new Map([['test/a.ts', "test('B001: x')\ntest('B009: y')\n"]])), [
    'B002: there is no test/gone.ts',
    'B003: test/a.ts does not cite it',
    'B003 is listed twice',
    'B003: test/a.ts does not cite it',
    'B009 is cited in test/a.ts, but not listed',
  ])
})
