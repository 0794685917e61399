// Metrics of the last good states on disk. Known only to the main thread.

import type { LastGoodStatus } from '../io/last-good/keeper.ts'
import { LAST_GOOD_AGE, LAST_GOOD_BYTES, LAST_GOOD_FAILURES, LAST_GOOD_WRITTEN } from './descriptors.ts'
import type { Exposition } from './exposition.ts'

export function exposeLastGood(into: Exposition, states: readonly LastGoodStatus[], nowMs: number): void {
  for (const { name, servedFromMs, writtenMs, bytes, failures } of states) {
    const ageMs = servedFromMs === 0 ? 0 : Math.max(1, nowMs - servedFromMs)
    into.addMetric(LAST_GOOD_AGE, ageMs / 1000, name)
    into.addMetric(LAST_GOOD_WRITTEN, writtenMs / 1000, name)
    into.addMetric(LAST_GOOD_BYTES, bytes, name)
    into.addMetric(LAST_GOOD_FAILURES, failures, name)
  }
}
