// The map of subjects (docs/subjects.md, docs/subjects.svg) is what the code says. Which subject imports which is exact; sizes and counts may be
// off by a tenth, so that a change of a few lines does not have to redraw it.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { ROOT, SUBJECTS, sourceFiles } from '../harness/docs/source-files.ts'
import { draw, measure, rowsOf, type SubjectRow, withTable } from '../harness/docs/subject-map.ts'

const PAGE = join(ROOT, 'docs/subjects.md')
const PICTURE = join(ROOT, 'docs/subjects.svg')
const OUTDATED = 'the map is out of date; to redraw it: UPDATE=1 node --test test/repository/subject-map.test.ts'
/** A number of one digit may be off by this much. */
const SMALL = 2

const measured = measure(sourceFiles(), SUBJECTS)
if (process.env['UPDATE'] === '1') {
  writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8'), measured))
  writeFileSync(PICTURE, draw(measured))
}
const page = readFileSync(PAGE, 'utf8')
const shown = rowsOf(page)

test('the table has every subject, and what each imports of which', () => {
  assert.deepEqual(shown.map(edges), measured.map(edges), OUTDATED)
})

function edges({ name, imports }: SubjectRow): readonly [string, string[]] {
  const kinds = [...imports].map(
    ([target, { values, types }]) => `${target}${values > 0 ? ' values' : ''}${types > 0 ? ' types' : ''}`,
  )
  return [name, kinds.sort((a, b) => (a < b ? -1 : 1))]
}

test('its numbers are those of the code, or off by a tenth at most', () => {
  const off = measured.flatMap((row, at) => {
    const told = numbersOf(shown[at] ?? assert.fail(OUTDATED))
    return [...numbersOf(row)].flatMap(([what, number]) => {
      const before = told.get(what) ?? 0
      return Math.abs(number - before) <= Math.max(SMALL, number / 10)
        ? []
        : [`${row.name}: ${what} ${before}, not ${number}`]
    })
  })
  assert.deepEqual(off, [], OUTDATED)
})

function numbersOf({ files, lines, imports }: SubjectRow): ReadonlyMap<string, number> {
  const counts = [...imports].flatMap(([target, { values, types }]): [string, number][] => [
    [`values of ${target}`, values],
    [`types of ${target}`, types],
  ])
  return new Map([['files', files], ['lines', lines], ...counts])
}

test('the picture is drawn from the table', () => {
  assert.equal(readFileSync(PICTURE, 'utf8'), draw(shown), OUTDATED)
})

test('what is written into the page is read from it again', () => {
  assert.deepEqual(rowsOf(withTable(page, measured)), measured)
})
