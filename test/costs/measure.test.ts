// The measurement itself: it finds a square, and is not misled by what is linear.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { growth, heldBytes } from './measure.ts'
import { parser } from './parser.ts'
import { KIB, repeat } from './shapes.ts'

const COMMAS = repeat(',')
const LIMIT = 256 * KIB

function countCommas(text: string): number {
  let count = 0
  for (let i = 0; i < text.length; i++) if (text.charAt(i) === ',') count++
  return count
}

/** Looks to the end from every 64th comma. */
function countPairs(text: string): number {
  let count = 0
  for (let i = 0; i < text.length; i += 64) if (text.indexOf(';', i) < 0) count++
  return count
}

const of = (read: (text: string) => unknown) => parser({ name: 'commas', limit: LIMIT, shapes: {}, read })

test('a pass over the text is linear', () => {
  const { length, ratio } = growth(of(countCommas), COMMAS, 3)
  assert.ok(ratio <= 3, `${ratio}`)
  assert.equal(length, LIMIT)
})

test('a pass to the end for each 64th character is not, and is measured no further than it takes to see it', () => {
  const { length, ratio } = growth(of(countPairs), COMMAS, 3)
  assert.ok(ratio > 3, `${ratio}`)
  assert.ok(length <= LIMIT)
})

test('what a result holds is counted', () => {
  const objects = of((text) => text.split(',').map((_, n) => ({ n })))
  // The whole heap is collected, or young objects tell enough.
  for (const most of [0, 8, 64]) {
    const held = heldBytes(objects, COMMAS, LIMIT, most)
    // An object with one field, and its place in the list.
    assert.ok(held > 16 && held < 64, `${held}`)
  }
  assert.ok(heldBytes(of(countCommas), COMMAS, LIMIT) < 1)
})

test('an exception that is a bug is not taken for a refusal', () => {
  const deep = (text: string): number => (text === '' ? 0 : deep(text.slice(1)) + 1)
  assert.throws(() => growth(of(deep), COMMAS, 3), RangeError)
  const refusing = of(() => {
    throw new SyntaxError('no')
  })
  assert.ok(growth(refusing, COMMAS, 3).ratio <= 3)
})

test('every file of a room of inputs is in the table', () => {
  const table = readFileSync(new URL('table.ts', import.meta.url), 'utf8')
  for (const entry of readdirSync(new URL('.', import.meta.url), { withFileTypes: true })) {
    if (!entry.isDirectory()) continue
    for (const file of readdirSync(new URL(`${entry.name}/`, import.meta.url))) {
      assert.ok(table.includes(`'./${entry.name}/${file}'`), `${entry.name}/${file}`)
    }
  }
})
