// A short campaign of the fuzzer on every run; `npm run fuzz` is the long one. A failure names the command that repeats it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PATIENT } from '../harness/patience.ts'
import { checkInput, makeInput, survivesValid } from './check-input.ts'

/** Always the same, so that a red run is red again; the long campaign explores others. */
const SEED = 20_261_121
const INPUTS = 50_000

test(`${INPUTS} mutated sessions, whole and in pieces, do no harm`, PATIENT, () => {
  for (let index = 0; index < INPUTS; index++) {
    const problem = checkInput(makeInput(SEED, index))
    assert.equal(problem, '', `again: npm run fuzz -- --seed ${SEED} --input ${index}\n${problem}`)
  }
})

test('most sessions are valid before they are mutated', PATIENT, () => {
  // Else the mutations would start from what is refused anyway, and reach little. Some of them ask for a table entry that
  // is not there, or open a window too far.
  let survived = 0
  for (let index = 0; index < 2_000; index++) if (survivesValid(SEED, index)) survived++
  assert.ok(survived > 1_000, `${survived} of 2000`)
})
