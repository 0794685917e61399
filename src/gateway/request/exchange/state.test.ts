import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canBecome, nextPhase, PHASES } from './state.ts'

test('a step that is not allowed is a bug', () => {
  for (const from of PHASES) {
    for (const to of PHASES) {
      if (canBecome(from, to)) assert.equal(nextPhase(from, to), to)
      else assert.throws(() => nextPhase(from, to), { message: `a request that is ${from} cannot become ${to}` })
    }
  }
})

test('every request can end at any time, and what is over stays over', () => {
  for (const from of PHASES) assert.equal(canBecome(from, 'over'), from !== 'over', from)
  assert.ok(!PHASES.some((to) => canBecome('over', to)))
})
