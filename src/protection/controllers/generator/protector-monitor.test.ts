import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import type { PodProtector } from '../../api/pod-protector.ts'
import { added, NO_SUMS, POD_STATES, type ProtectorSums, sumsOf } from '../../core/quota/protector-sums.ts'
import { ProtectorTable } from '../../state/protectors.ts'
import { monitorProtectors, ProtectorMonitor } from './protector-monitor.ts'

interface Row {
  readonly name: string
  readonly minAvailable: number
  readonly total?: number
  readonly available?: number
  readonly estimated?: number
  readonly latency?: number
  readonly ready?: number
  readonly scheduled?: number
  readonly running?: number
}
type State = readonly [number, number, number]
interface Step {
  readonly create?: readonly Row[]
  readonly update?: Readonly<Record<string, { readonly minAvailable: number }>>
  readonly delete?: readonly string[]
  readonly expect:
    | 'all zero'
    | (Readonly<Record<string, number>> & Readonly<Record<(typeof POD_STATES)[number], State>>)
}

const { monitor: table } = JSON.parse(
  readFileSync(new URL('../../../../test/data/podseidon-generator.json', import.meta.url), 'utf8'),
) as { monitor: { steps: Step[] } }

function protectorOf(row: Row): PodProtector {
  const {
    name,
    minAvailable,
    total,
    available = 0,
    estimated = 0,
    latency = 0,
    ready = 0,
    scheduled = 0,
    running = 0,
  } = row
  const summary = {
    totalReplicas: total ?? 0,
    aggregatedAvailableReplicas: available,
    estimatedAvailableReplicas: estimated,
    maxLatencyMillis: latency,
    aggregatedReady: ready,
    aggregatedScheduled: scheduled,
    aggregatedRunning: running,
  }
  return {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name, namespace: 'ns', uid: name },
    spec: { minAvailable, minReadySeconds: 0, selector: { matchLabels: { app: name } } },
    // One was never counted.
    ...(total !== undefined && { status: { cells: [], summary } }),
  }
}

/** In the form of the table. */
function flat(sums: ProtectorSums): Record<string, unknown> {
  const states = POD_STATES.map((name) => {
    const { meetsMinAvailable, replicas, proportionPpm } = sums.states[name]
    return [name, [meetsMinAvailable, replicas, proportionPpm]] as const
  })
  return {
    numWorkloads: sums.workloads,
    numNonZeroWorkloads: sums.nonZeroWorkloads,
    minAvailable: sums.minAvailable,
    estimatedAvailable: sums.estimatedAvailable,
    sumLatencyMillis: sums.latencyMillis,
    ...Object.fromEntries(states),
  }
}

test("Podseidon's table of the monitor, by way of the table of protectors", () => {
  const protectors = new ProtectorTable()
  const monitor = new ProtectorMonitor()
  protectors.put({ ...protectorOf({ name: 'before', minAvailable: 3, total: 5 }) })
  const end = monitorProtectors(monitor, protectors)
  assert.equal(monitor.sums.minAvailable, 3)
  protectors.remove('ns', 'before')
  const rows = new Map<string, Row>()
  for (const step of table.steps) {
    for (const row of step.create ?? []) rows.set(row.name, row)
    for (const [name, change] of Object.entries(step.update ?? {})) {
      rows.set(name, { ...rows.get(name), name, minAvailable: change.minAvailable })
    }
    for (const name of step.delete ?? []) {
      rows.delete(name)
      protectors.remove('ns', name)
    }
    for (const row of rows.values()) protectors.put({ ...protectorOf(row) })
    const expected = step.expect === 'all zero' ? flat(NO_SUMS) : step.expect
    assert.deepEqual(flat(monitor.sums), expected)
  }
  end()
  protectors.remove('ns', '2')
  assert.equal(monitor.sums.workloads, 2)
})

test('gauges are numbers with no workloads, and what their names say with some', () => {
  const monitor = new ProtectorMonitor()
  for (const [name, value] of monitor.gauges()) assert.ok(Number.isFinite(value), name)
  monitor.put('ns/a', protectorOf({ name: 'a', minAvailable: 10, total: 12, available: 8, estimated: 5, latency: 7 }))
  monitor.put('ns/b', protectorOf({ name: 'b', minAvailable: 0 }))
  const gauges = monitor.gauges()
  const expected = {
    num_workloads: 2,
    num_non_zero_workloads: 1,
    min_available: 10,
    current_estimated_available_replicas: 5,
    sum_latency_millis: 7,
    total_outstanding_history: 3,
    num_created_workloads: 2,
    num_available_workloads: 1,
    proportion_available_workloads: 0.5,
    current_aggregated_available_pods: 8,
    proportion_available_pods: 0.8,
    sum_available_proportion: 0.8,
    avg_available_proportion_ppm: 800_000,
  }
  for (const [name, value] of Object.entries(expected)) assert.equal(gauges.get(name), value, name)
  assert.equal(gauges.size, 6 + 6 * POD_STATES.length)
})

test('property: whatever comes and goes, the sums are those of what is there', () => {
  const step = fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    minAvailable: fc.nat(5),
    total: fc.nat(8),
    available: fc.nat(8),
    estimated: fc.integer({ min: -3, max: 8 }),
    remove: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const monitor = new ProtectorMonitor()
      const there = new Map<string, PodProtector>()
      for (const { remove, ...row } of steps) {
        if (remove) {
          monitor.remove(row.name)
          there.delete(row.name)
        } else {
          monitor.put(row.name, protectorOf(row))
          there.set(row.name, protectorOf(row))
        }
      }
      const expected = [...there.values()].reduce((sums, one) => added(sums, sumsOf(one), 1), NO_SUMS)
      assert.deepEqual(flat(monitor.sums), flat(expected))
    }),
  )
})
