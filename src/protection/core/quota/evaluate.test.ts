import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { podOf } from '../../../../test/harness/objects/protection-requests.ts'
import type { CellTime } from '../../../gateway/core/clocks/cell-clock.ts'
import type { PodProtector } from '../../api/pod-protector.ts'
import type { HealthCriterion, PodFacts } from '../../api/protection.ts'
import { applyOperations, KnownQuotas, type OperationResult, type ReserveOperation } from '../ledger/history.ts'
import { asksNoQuota, evaluateDeletion, freePass } from './quota.ts'

const NOW = 1_800_000_000_000
/** Its kubelet's clock is an hour ahead: it took 5 s to become ready, whatever that clock says. */
const KUBELET = NOW + 3_600_000
const TIME = { earliestMs: NOW - 1_000, latestMs: NOW }
const POD = podOf('web-0', {
  namespace: 'default',
  uid: 'u',
  createdMs: NOW - 20_000,
  startedMs: KUBELET - 20_000,
  readySinceMs: KUBELET - 15_000,
  readyWrittenMs: NOW - 15_000,
})

const NO_SUMMARY = { totalReplicas: 0, aggregatedAvailableReplicas: 0, estimatedAvailableReplicas: 0 }

function evaluated(
  pod: Partial<PodFacts>,
  minReadySeconds: number,
  criterion?: HealthCriterion,
  time: CellTime | undefined = TIME,
): string {
  const request = { pod: { ...POD, ...pod }, criterion }
  const pass = freePass(request)
  if (pass !== undefined) return pass
  const evaluation = evaluateDeletion(request, minReadySeconds, time, 120_000)
  if (evaluation.type === 'record') return 'record'
  if (evaluation.availableInMs > 0) return `${evaluation.pod.criterion} in ${evaluation.availableInMs}`
  return `${evaluation.pod.criterion}${evaluation.pod.available ? ' available' : ''}${asksNoQuota(evaluation.pod) ? ' free' : ''}`
}

test('what is asked of a protector', () => {
  const rows: [Partial<PodFacts>, number, HealthCriterion | undefined, string][] = [
    [{}, 0, undefined, 'Available available'],
    [{}, -5, undefined, 'Available available'],
    [{ terminating: true, ready: false }, 0, 'Running', 'AlreadyTerminating'],
    [{ ready: false }, 0, undefined, 'AlreadyUnready'],
    // D12: a pod that is evaluated by another criterion does not pass just because it is unready.
    [{ ready: false }, 0, 'Running', 'Running'],
    [{ ready: false, running: false }, 0, 'Running', 'Running free'],
    [{ ready: false, criterion: 'Ready' }, 0, undefined, 'Ready free'],
    // The Eviction's criterion outranks the pod's.
    [{ ready: false, criterion: 'Running' }, 0, 'Available', 'AlreadyUnready'],
    // Created 20 s ago and ready 5 s later, minus the truncated second: for 16 s at most.
    [{}, 16, undefined, 'Available available'],
    [{}, 17, undefined, 'Available in 1000'],
    [{}, 136, undefined, 'Available in 120000'],
    [{}, 137, undefined, 'record'],
    // Without the kubelet's timestamp, it may have been ready since its creation.
    [{ startedMs: 0 }, 20, undefined, 'Available available'],
    [{ readySinceMs: 0 }, 20, undefined, 'Available available'],
    [{ startedMs: 0 }, 21, undefined, 'Available in 1000'],
    [{ createdMs: 0 }, 3600, undefined, 'Available available'],
    [{}, 17, 'Ready', 'Ready in 1000'],
  ]
  for (const [pod, minReadySeconds, criterion, expected] of rows) {
    assert.equal(
      evaluated(pod, minReadySeconds, criterion),
      expected,
      JSON.stringify([pod, minReadySeconds, criterion]),
    )
  }
})

test('D18: nothing is known of the clocks of the cell: whatever is ready may be available', () => {
  const unknown = evaluateDeletion({ pod: POD, criterion: undefined }, 3600, undefined, 120_000)
  assert.deepEqual(unknown.type === 'reserve' && unknown.pod.available, true)
})

const flags = fc.record({
  criterion: fc.constantFrom<HealthCriterion>('Available', 'Ready', 'Running', 'Scheduled'),
  scheduled: fc.boolean(),
  running: fc.boolean(),
  ready: fc.boolean(),
  available: fc.boolean(),
  young: fc.boolean(),
})
const operations = fc.array(
  fc
    .record({ uid: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), pod: flags, force: fc.boolean() })
    .map((given): ReserveOperation => ({ type: 'reserve', cell: 'east', name: '', resourceVersion: '', ...given })),
  { maxLength: 8 },
)

test('what is known of a quota says the same as a batch that is written', () => {
  const limits = { maxConcurrentLag: 0, compactThreshold: 2, aggregationRateMs: 0, staleAfterMs: 0 }
  const without = (results: readonly OperationResult[]): unknown => results.map((one) => ({ ...one, startTime: '' }))
  fc.assert(
    fc.property(
      fc.array(operations, { maxLength: 4 }),
      fc.integer({ min: 0, max: 6 }),
      fc.integer({ min: 0, max: 8 }),
      fc.integer({ min: 0, max: 4 }),
      (batches, minAvailable, available, maxConcurrentLag) => {
        const bounded = { ...limits, maxConcurrentLag }
        const quotas = new KnownQuotas()
        const counts = { totalReplicas: available, availableReplicas: available, readyReplicas: available }
        const aggregation = { ...counts, runningReplicas: available, scheduledReplicas: available }
        let protector: PodProtector = {
          apiVersion: '',
          kind: '',
          metadata: { name: 'web' },
          spec: { minAvailable, minReadySeconds: 0, selector: {} },
          status: { cells: [{ cellID: 'east', aggregation }], summary: NO_SUMMARY },
        }
        for (const [index, batch] of batches.entries()) {
          const nowMicros = (NOW + index) * 1000
          const written = applyOperations(protector, batch, bounded, nowMicros)
          for (let i = 0; i < 2; i++) {
            const known = quotas.evaluate(protector, batch, bounded, nowMicros)
            assert.deepEqual(without(known), without(written.results))
          }
          protector = { ...protector, status: written.status }
        }
      },
    ),
    { numRuns: 300 },
  )
})
