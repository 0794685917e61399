// A short search for slow inputs on every run; `npm run fuzz -- --slow` is the long one. A failure prints the recipe of the input, to be
// copied into the table of its parser in test/costs/.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Parser, parser } from '../costs/parser.ts'
import { KIB, repeat } from '../costs/shapes.ts'
import { BODIES, FILES, OBJECTS, REQUESTS, UPSTREAM } from '../costs/table.ts'
import { PATIENT } from '../harness/patience.ts'
import { findSlow } from './slow.ts'

const SEED = 20_261_123
const SHORT_SECONDS = 0.05
const LONG_SECONDS = 5

const GROUPS = { requests: REQUESTS, bodies: BODIES, objects: OBJECTS, upstream: UPSTREAM, files: FILES }

for (const [name, parsers] of Object.entries(GROUPS)) {
  describe(name, () => {
    test(`no slow input of ${name} is found`, PATIENT, () => search(parsers, SHORT_SECONDS))
    test(`no slow input of ${name} is found in longer time (long)`, PATIENT, () => search(parsers, LONG_SECONDS))
  })
}

function search(parsers: readonly Parser[], seconds: number): void {
  assert.deepEqual(findSlow({ parsers, seed: SEED, seconds }), [])
}

test('an expression that backtracks is found', PATIENT, () => {
  const backtracking = parser({
    name: 'blanks before an end',
    limit: 64 * KIB,
    read: (text) => / +;/.test(text),
    tokens: [' ', ';', 'a'],
    shapes: { letters: repeat('a'), pairs: repeat('a;') },
  })
  const [slow] = findSlow({ parsers: [backtracking], seed: SEED, seconds: 60 })
  assert.ok(slow !== undefined && slow.ratio > 3)
  assert.ok(slow.recipe.parts.some(({ text, share }) => share > 0 && text.includes(' ')))
})
