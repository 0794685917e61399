// No attack: a program that only computes, in the attacker's place. It shows what the machine itself does to others.

import { setImmediate as turn } from 'node:timers/promises'
import type { Attack } from './attack.ts'

const SLICE_MS = 5

export const BUSY_CORE: Attack = {
  reference: '',
  does: 'computes',
  who: [],
  answers: [],
  async run(target, signal) {
    target.answers.accepted++
    while (!signal.aborted) {
      const until = performance.now() + SLICE_MS
      while (performance.now() < until);
      await turn()
    }
  },
}
