import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextPhase, type Phase, TRANSITIONS } from './phase.ts'

const PHASES = Object.keys(TRANSITIONS) as Phase[]

test('only what the table allows is a step', () => {
  for (const from of PHASES) {
    for (const to of PHASES) {
      if (TRANSITIONS[from].includes(to)) assert.equal(nextPhase(from, to), to)
      else assert.throws(() => nextPhase(from, to), { message: `a request that is ${from} cannot become ${to}` })
    }
  }
})

test('every request can end at any time, and what is over stays over', () => {
  for (const from of PHASES) assert.equal(TRANSITIONS[from].includes('over'), from !== 'over', from)
})
