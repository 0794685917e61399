import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { HealthCriterion } from '../../api/protection.ts'
import { passes, type QuotaPod, type QuotaResult, type QuotaState, QuotaTally } from './quota.ts'

/** Evaluates a batch like the ledger: the last first, results in the order of the batch. */
function admitBatch(state: QuotaState, batch: readonly QuotaPod[]): readonly QuotaResult[] {
  const tally = new QuotaTally(state)
  return batch
    .toReversed()
    .map((pod) => {
      const { result } = tally.evaluate(pod)
      if (passes(result)) tally.take(pod)
      return result
    })
    .toReversed()
}

interface QuotaCase {
  readonly name: string
  readonly ppr: Record<
    'minAvailable' | 'scheduled' | 'running' | 'ready' | 'available' | 'currentLag' | 'maxLag',
    number
  >
  readonly batch: readonly {
    readonly healthCriterion: HealthCriterion
    readonly isScheduled: boolean
    readonly isRunning: boolean
    readonly isReady: boolean
    readonly isAvailable: boolean
  }[]
  readonly expect: readonly string[]
}

interface LagCase extends Omit<QuotaCase, 'batch' | 'expect'> {
  readonly batchOfFullyHealthyPods: number
  readonly intendedResultCounts: Readonly<Record<string, number>>
}

const table = JSON.parse(
  readFileSync(new URL('../../../../test/data/podseidon-quota.json', import.meta.url), 'utf8'),
) as {
  readonly quota: readonly QuotaCase[]
  readonly maxConcurrentLag: readonly LagCase[]
}

const healthy: QuotaPod = { criterion: 'Available', scheduled: true, running: true, ready: true, available: true }

function stateOf({ ppr }: Pick<QuotaCase, 'ppr'>): QuotaState {
  const { minAvailable: reject, currentLag, maxLag, ...counts } = ppr
  const { available, ready, running, scheduled } = counts
  const remaining = maxLag - currentLag
  return { available, ready, running, scheduled, lagAvailable: currentLag, lagOthers: currentLag, reject, remaining }
}

for (const quotaCase of table.quota) {
  test(quotaCase.name, () => {
    const batch = quotaCase.batch.map((pod) => ({
      criterion: pod.healthCriterion,
      scheduled: pod.isScheduled,
      running: pod.isRunning,
      ready: pod.isReady,
      available: pod.isAvailable,
    }))
    assert.deepEqual(admitBatch(stateOf(quotaCase), batch), quotaCase.expect)
  })
}

for (const lagCase of table.maxConcurrentLag) {
  test(`D2: ${lagCase.name}`, () => {
    const results = admitBatch(
      stateOf(lagCase),
      Array.from({ length: lagCase.batchOfFullyHealthyPods }, () => healthy),
    )
    const counts: Record<string, number> = {}
    for (const result of results) counts[result] = (counts[result] ?? 0) + 1
    assert.deepEqual(counts, lagCase.intendedResultCounts)
  })
}

test('a limit that is full comes before everything else, and who is unhealthy takes from it too', () => {
  const [full] = table.maxConcurrentLag
  assert.ok(full)
  const state = { ...stateOf(full), remaining: 1 }
  const unhealthy = { ...healthy, available: false }
  assert.deepEqual(admitBatch(state, [healthy, unhealthy]), ['Retry', 'AlreadyUnhealthy'])
  assert.deepEqual(admitBatch({ ...state, remaining: 0 }, [unhealthy]), ['Retry'])
})
