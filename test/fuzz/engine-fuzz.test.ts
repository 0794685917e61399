// A short campaign of the fuzzer on every run; `npm run fuzz` is the long one. A failure names the command that repeats it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkInput, makeInput } from './check-input.ts'

/** Always the same, so that a red run is red again; the long campaign explores others. */
const SEED = 20_261_121
const INPUTS = 50_000

test(`${INPUTS} mutated sessions, whole and in pieces, do no harm`, () => {
  for (let index = 0; index < INPUTS; index++) {
    const problem = checkInput(makeInput(SEED, index))
    assert.equal(problem, '', `again: npm run fuzz -- --seed ${SEED} --input ${index}\n${problem}`)
  }
})

test('valid sessions of the fuzzer are taken as valid', () => {
  // Else the mutations would start from what is refused anyway, and reach nothing.
  let clean = 0
  for (let index = 0; index < 500; index++) {
    if (checkInput(makeInput(SEED, index)) === '') clean++
  }
  assert.equal(clean, 500)
})
