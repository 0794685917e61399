// The walks of docs/walks.md: each step is where it says, and a search for its name finds it. The files of a walk lead from one to the next, are as
// many as the page says, and stand in three subjects at most.

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
  /** A stop before it, which the stop imports. */
  readonly reads: SourceFile | undefined
}

/** The rows of one part. */
function stopsOf(text: string): Stop[] {
  const rows = text.matchAll(/^\| (\d+) \| `src\/([^`]+)`(?: \((registered by|reads) `src\/([^`]+)`\))? \| \S.* \|$/gm)
  return [...rows].map(([, number, path = '', relation, other = '']) => ({
    number: Number(number),
    file: fileAt(path),
    registeredBy: relation === 'registered by' ? fileAt(other) : undefined,
    reads: relation === 'reads' ? fileAt(other) : undefined,
  }))
}

function fileAt(path: string): SourceFile {
  return files.get(path) ?? assert.fail(`there is no src/${path}`)
}

function isImportedBy({ path }: SourceFile, by: SourceFile): boolean {
  return by.imports.some((one) => one.path === path)
}

/** Subjects with stops; src/main.ts has none. */
function subjectsOf(stops: readonly Stop[]): readonly string[] {
  return stops.map(({ file }) => file.subject).filter((subject) => subject !== '')
}

/** As the page says it. */
function countsOf(stops: readonly Stop[]): string {
  const subjects = subjectsOf(stops)
  const all = new Set(subjects).size
  const rooms = new Set(stops.map(({ file }) => dirname(file.path))).size
  const changes = subjects.filter((subject, at) => at > 0 && subject !== subjects[at - 1]).length
  const inSubjects = `${stops.length} stops in ${all} ${all === 1 ? 'subject' : 'subjects'} and ${rooms} rooms`
  return `${inSubjects}, which change the subject ${changes} times`
}

const MOST_SUBJECTS = 3

for (const title of [
  'The files of a GET',
  'The files of a change',
  'The files of a setting',
  'The files of a deletion',
]) {
  const [before = '', ...parts] = walk(title, '\n## ').split(/\n(?=### |\| \| file \|)/)
  const stops = parts.flatMap(stopsOf)
  const afterwards = parts.findIndex((part) => /^### \w+: the status afterwards/.test(part))
  const answered = parts.slice(0, afterwards === -1 ? undefined : afterwards).flatMap(stopsOf)

  test(`${title}: each is imported by one before it, or related to one as its row says`, () => {
    assert.ok(stops.length >= 10, `${stops.length} stops`)
    assert.deepEqual(
      stops.map(({ number }) => number),
      stops.map((_, at) => at + 1),
    )
    assert.equal(new Set(stops.map(({ file }) => file.path)).size, stops.length, 'each stands once')
    for (const [at, { file, registeredBy, reads }] of stops.entries()) {
      const earlier = stops.slice(0, at).map((stop) => stop.file)
      const known = earlier.some((one) => isImportedBy(file, one))
      if (registeredBy === undefined && reads === undefined) {
        assert.ok(known || at === 0, `no stop before ${file.path} imports it`)
        continue
      }
      assert.ok(!known, `${file.path} is imported by a stop before it`)
      if (registeredBy !== undefined) {
        assert.ok(isImportedBy(file, registeredBy), `${registeredBy.path} does not register ${file.path}`)
      }
      if (reads !== undefined) {
        assert.ok(earlier.includes(reads), `${reads.path} is not a stop before ${file.path}`)
        assert.ok(isImportedBy(reads, file), `${file.path} does not read ${reads.path}`)
      }
    }
  })

  test(`${title} are as many as the page says, in three subjects at most`, () => {
    const later = stops.length - answered.length
    const told = countsOf(answered) + (later === 0 ? '' : `; the status afterwards is ${later} more stops`)
    assert.ok(before.replace(/\s+/g, ' ').includes(told), told)
    assert.ok(new Set(subjectsOf(answered)).size <= MOST_SUBJECTS)
    const [, row = ''] = new RegExp(`^\\| \\[[^\\]]+\\]\\(#${anchorOf(title)}\\) \\| (.*) \\|$`, 'm').exec(PAGE) ?? []
    const [count = '', subjects = ''] = row.split(' | ')
    assert.equal(count, `${answered.length}${later === 0 ? '' : `, and ${later} for the status afterwards`}`)
    assert.deepEqual(subjects.split(', '), [...new Set(subjectsOf(answered))])
  })
}

function anchorOf(title: string): string {
  return title.toLowerCase().replaceAll(' ', '-')
}
