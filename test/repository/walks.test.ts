// The walks of docs/walks.md: each step is where it says, and a search for its name finds it. The files of a deletion lead from one to the next,
// and are as many as the page says.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { dirname } from 'node:path/posix'
import { test } from 'node:test'
import { ROOT, type SourceFile, sourceFiles } from '../harness/docs/source-files.ts'

const PAGE = readFileSync(join(ROOT, 'docs/walks.md'), 'utf8')
const WALKS = ['A GET', 'A change of an UpstreamCluster', 'The deletion of a pod']

interface Step {
  /** `serve`, or `Exchange.end`. */
  readonly name: string
  readonly file: string
}

/** @param end what begins the next part */
function walk(title: string, end: string | RegExp = /\n##+ /): string {
  const [, text = assert.fail(`docs/walks.md has no walk "${title}"`)] = PAGE.split(`\n## ${title}\n`)
  return text.split(end)[0] ?? ''
}

function stepsOf(text: string): Step[] {
  return [...text.matchAll(/`((?:[A-Z]\w+\.)?[a-z]\w+)`\s+(?:in|\(in)\s+`(src\/[\w./-]+\.ts)`/g)].map(
    ([, name = '', file = '']) => ({ name, file }),
  )
}

/** Where a function, or a method of a class, is defined. */
function definition(name: string): RegExp {
  const [method = '', owner] = name.split('.').reverse()
  if (owner === undefined) return new RegExp(`^(?:export )?(?:async )?function ${method}\\b`, 'm')
  return new RegExp(
    `^(?:export )?(?:abstract )?class ${owner}\\b(?:(?!\\n}\\n)[^])*?\\n  (?:protected )?(?:async )?#?${method}[(<]`,
    'm',
  )
}

const files = sourceFiles()
const sources = new Map([...files].map(([path, { text }]) => [join('src', path), text]))

for (const title of WALKS) {
  const steps = stepsOf(walk(title))

  test(`${title}: each step is in the file that it names`, () => {
    assert.ok(steps.length >= 10, `${steps.length} steps`)
    for (const { name, file } of steps) {
      const source = sources.get(file) ?? assert.fail(`${name}: there is no ${file}`)
      assert.match(source, definition(name), `${file} does not define ${name}`)
    }
  })

  test(`${title}: the name alone finds each step`, () => {
    for (const { name, file } of steps) {
      const found = [...sources].filter(([, source]) => definition(name).test(source)).map(([path]) => path)
      assert.deepEqual(found, [file], name)
    }
  })

  test(`${title}: goes down, and comes back once`, () => {
    const ways = [...walk(title).matchAll(/^(Down|Back)\b/gm)].map(([, way]) => way)
    assert.deepEqual(ways, ['Down', 'Back'])
  })
}

interface Stop {
  readonly number: number
  readonly file: SourceFile
  /** It hands the stop to one before it, which does not import it. */
  readonly registeredBy: SourceFile | undefined
}

/** The rows of one part. */
function stopsOf(text: string): Stop[] {
  const rows = text.matchAll(/^\| (\d+) \| `src\/([^`]+)`(?: \(registered by `src\/([^`]+)`\))? \| \S.* \|$/gm)
  return [...rows].map(([, number, path = '', registrar]) => ({
    number: Number(number),
    file: fileAt(path),
    registeredBy: registrar === undefined ? undefined : fileAt(registrar),
  }))
}

function fileAt(path: string): SourceFile {
  return files.get(path) ?? assert.fail(`there is no src/${path}`)
}

function isImportedBy({ path }: SourceFile, by: SourceFile): boolean {
  return by.imports.some((one) => one.path === path)
}

const [beforeParts = '', ...parts] = walk('The files of a deletion', '\n## ').split('\n### ')
const stops = parts.flatMap(stopsOf)

test('the files of a deletion: each is imported by one before it, or registered by the file that its row names', () => {
  assert.deepEqual(
    stops.map(({ number }) => number),
    stops.map((_, at) => at + 1),
  )
  assert.equal(new Set(stops.map(({ file }) => file.path)).size, stops.length, 'each stands once')
  for (const [at, { file, registeredBy }] of stops.entries()) {
    const known = stops.slice(0, at).some((earlier) => isImportedBy(file, earlier.file))
    if (registeredBy === undefined) assert.ok(known || at === 0, `no stop before ${file.path} imports it`)
    else {
      assert.ok(isImportedBy(file, registeredBy), `${registeredBy.path} does not register ${file.path}`)
      assert.ok(!known, `${file.path} is imported by a stop before it`)
    }
  }
})

test('the files of a deletion are as many as the page says', () => {
  const afterwards = parts.findIndex((part) => /^\w+: the status afterwards/.test(part))
  const [answered, later] = [parts.slice(0, afterwards), parts.slice(afterwards)].map((some) => some.flatMap(stopsOf))
  assert.ok(answered !== undefined && later !== undefined)
  const subjects = answered.map(({ file }) => file.subject)
  const rooms = new Set(answered.map(({ file }) => dirname(file.path)))
  const changes = subjects.filter((subject, at) => at > 0 && subject !== subjects[at - 1]).length
  const told = `${answered.length} stops in ${new Set(subjects).size} subjects and ${rooms.size} rooms, which change the subject ${changes} times; the status afterwards is ${later.length} more stops`
  assert.ok(beforeParts.replace(/\s+/g, ' ').includes(told), told)
})
