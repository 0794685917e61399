import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_PROTECTION_SETTINGS } from '../../../process/api/protection-settings.ts'
import type { CellStatus, PodProtector } from '../../api/pod-protector.ts'
import { summarize } from '../history/cell-history.ts'
import { formatMicros } from '../history/micro-time.ts'
import { agingProtectors, isStaleCell, staleChanged } from './cells.ts'

const SECOND = 1_000_000
const NOW = 1_767_323_045 * SECOND

function cell(cellID: string, agoSeconds: number | undefined, stale?: boolean): CellStatus {
  const lastEventTime = agoSeconds === undefined ? {} : { lastEventTime: formatMicros(NOW - agoSeconds * SECOND) }
  const aggregation = { totalReplicas: 5, availableReplicas: 5, ...lastEventTime }
  return { cellID, aggregation, ...(stale !== undefined && { stale }) }
}

function held(...cells: CellStatus[]): { protector: PodProtector } {
  const spec = { minAvailable: 1, minReadySeconds: 0, selector: {} }
  const summary = { totalReplicas: 0, aggregatedAvailableReplicas: 0, estimatedAvailableReplicas: 0 }
  const protector = {
    apiVersion: '',
    kind: '',
    metadata: { name: 'p', namespace: 'n' },
    spec,
    status: { cells, summary },
  }
  return { protector }
}

test('a cell is stale as the summary has it', () => {
  const cells = [cell('young', 59), cell('old', 61), cell('unknown', undefined), cell('exact', 60)]
  for (const staleAfterMs of [0, 60_000]) {
    const limits = { ...DEFAULT_PROTECTION_SETTINGS, staleAfterMs }
    const { cells: written } = summarize(cells, limits, NOW)
    assert.equal(written.length, cells.length)
    for (const one of written) {
      assert.equal(isStaleCell(one, staleAfterMs, NOW), one.stale === true, `${one.cellID} ${staleAfterMs}`)
    }
    // The written status needs no further write.
    assert.deepEqual(staleChanged([held(...written)], staleAfterMs, NOW), [])
  }
})

test('found is whose staleness is not as it is written', () => {
  const [gone, back, well, marked] = [
    held(cell('a', 61)),
    held(cell('a', 1, true)),
    held(cell('a', 1)),
    held(cell('a', 61, true)),
  ]
  assert.deepEqual(staleChanged([gone, back, well, marked], 60_000, NOW), [gone, back])
  assert.deepEqual(staleChanged([gone, back, well, marked], 0, NOW), [back, marked])
})

test('a cell that was heard of and not written for a third of staleAfter is to be written', () => {
  const [old, young, other, none] = [held(cell('a', 21)), held(cell('a', 19)), held(cell('b', 50)), held()]
  assert.deepEqual(agingProtectors([old, young, other, none], 'a', 60_000, NOW), [old])
  // Not if nothing was heard from it since.
  assert.deepEqual(agingProtectors([old, young, other, none], 'a', 60_000, NOW - 21 * SECOND), [])
})
