// Clocks of cells as a gateway has measured them.

import { CellClocks } from '../../../src/gateway/core/clocks/cell-clock.ts'
import type { Clock } from '../../../src/kit/api/ports.ts'

/** Clocks of cells that agree with ours, as measured within a second, in an answer that took no time. */
export function agreeingClocks(clock: Clock, ...cells: readonly string[]): CellClocks {
  const clocks = new CellClocks(0)
  for (const cell of cells) {
    const monotonicMs = clock.monotonic()
    clocks.observe(cell, 'apiserver', new Date(clock.now()).toUTCString(), monotonicMs, monotonicMs)
  }
  return clocks
}
