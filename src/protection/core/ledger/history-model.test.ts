// Compares the ledger with the simplest possible one, a list of single deletions that are never joined, and with what really happens to the
// pods, while the aggregator lags arbitrarily.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { PodProtector } from '../../api/pod-protector.ts'
import type { HistoryLimits } from '../history/cell-history.ts'
import { parseMicros } from '../history/micro-time.ts'
import type { QuotaPod } from '../quota/quota.ts'
import { aggregateCell } from './aggregate-cell.ts'
import { applyOperations, type HistoryOperation } from './history.ts'
import type { CellSnapshot, PodState } from './prune-history.ts'

const TIMEOUT_MICROS = 60_000_000
const START = parseMicros('2026-01-01T00:00:00Z')

interface Pod {
  readonly uid: string
  state: PodState
  version: number
}

/** An admitted request: it may still delete the pod until it times out. */
interface Attempt {
  readonly uid: string
  readonly admittedAt: number
  /** '' = it holds no reservation. */
  readonly hold: string
  /** Upstream refuses to delete a pod that has changed since: free passes require that. */
  readonly onlyVersion: number | undefined
}

/** One deletion of the reference ledger. */
interface Deletion {
  readonly uid: string
  start: number
  version: number
  counter: number
}

interface Shot {
  readonly version: number
  readonly pods: ReadonlyMap<string, Pod>
  readonly takenAt: number
}

type Step =
  | { readonly do: 'wait'; readonly micros: number }
  | { readonly do: 'create' }
  | { readonly do: 'ready'; readonly pod: number }
  | { readonly do: 'batch'; readonly pods: readonly { readonly pod: number; readonly force: boolean }[] }
  | { readonly do: 'upstream'; readonly attempt: number; readonly deletes: boolean }
  | { readonly do: 'aggregate'; readonly late: number; readonly streamTime: boolean }

class World {
  readonly limits: HistoryLimits
  readonly minAvailable: number
  now: number = START
  version = 1
  pods: Pod[] = []
  attempts: Attempt[] = []
  shots: Shot[] = []
  counted = 0
  protector: PodProtector
  plain: Deletion[] = []
  plainAvailable = 0
  /** Forced deletions took pods that were not granted. */
  forced = 0

  constructor(minAvailable: number, pods: number, limits: HistoryLimits) {
    this.minAvailable = minAvailable
    this.limits = limits
    this.protector = {
      apiVersion: 'podseidon.kubewharf.io/v1alpha1',
      kind: 'PodProtector',
      metadata: { name: 'p', namespace: 'n' },
      spec: { minAvailable, minReadySeconds: 0, selector: {} },
    }
    for (let index = 0; index < pods; index += 1) this.create('available')
    this.aggregate(0, true)
  }

  step(step: Step): void {
    switch (step.do) {
      case 'wait':
        this.now += step.micros
        this.attempts = this.attempts.filter(({ admittedAt }) => this.now <= admittedAt + TIMEOUT_MICROS)
        return
      case 'create':
        this.create('alive')
        return
      case 'ready': {
        const pod = this.pods[step.pod % this.pods.length]
        if (pod?.state === 'alive') this.change(pod, 'available')
        return
      }
      case 'batch':
        this.batch(step.pods)
        return
      case 'upstream':
        this.upstream(step.attempt, step.deletes)
        return
      case 'aggregate':
        this.aggregate(step.late, step.streamTime)
        return
    }
  }

  create(state: PodState): void {
    this.now += 1
    this.version += 1
    this.pods.push({ uid: `u${this.pods.length}`, state, version: this.version })
    this.shoot()
  }

  change(pod: Pod, state: PodState): void {
    this.now += 1
    this.version += 1
    pod.state = state
    pod.version = this.version
    this.shoot()
  }

  shoot(): void {
    const pods = new Map(this.pods.filter(({ state }) => state !== 'absent').map((pod) => [pod.uid, { ...pod }]))
    this.shots.push({ version: this.version, pods, takenAt: this.now })
  }

  batch(wanted: readonly { readonly pod: number; readonly force: boolean }[]): void {
    this.now += 1
    const pods = wanted.flatMap(({ pod: index, force }) => {
      const pod = this.pods[index % this.pods.length]
      return pod === undefined || pod.state === 'absent' || pod.state === 'terminating' ? [] : [{ pod, force }]
    })
    const operations = pods.map(({ pod, force }) => operationOf(pod, force))
    const { status, changed, results } = applyOperations(this.protector, operations, this.limits, this.now)
    if (changed) this.protector = { ...this.protector, status }
    const order = pods.map((_, index) => index).toReversed()
    for (const type of ['record', 'force', 'reserve']) {
      const before = this.plain.map((deletion) => ({ ...deletion }))
      for (const index of order) {
        const { pod, force } = pods[index] ?? { pod: undefined, force: false }
        const { result, startTime } = results[index] ?? { result: 'Denied', startTime: '' }
        if (pod === undefined || type !== (pod.state === 'alive' ? 'record' : force ? 'force' : 'reserve')) continue
        if (result === 'Ok') this.mayAdmit(pod)
        const passes = result === 'Ok' || result === 'AlreadyHasBucket' || result === 'Done'
        if (!passes && type !== 'force') continue
        // Recording a known pod again changes nothing: a free pass ends with the version that it was given for.
        if (type !== 'record' || startTime !== '') this.record(pod)
        const onlyVersion = type === 'record' ? pod.version : undefined
        this.attempts.push({
          uid: pod.uid,
          admittedAt: this.now,
          hold: type === 'record' ? '' : startTime,
          onlyVersion,
        })
        if (!passes) this.forced += 1
      }
      assert.ok(this.plain.length >= before.length)
    }
  }

  /** What the reference ledger says of a pod that is not in it yet. */
  mayAdmit(pod: Pod): void {
    const others = this.plain.filter(({ uid }) => uid !== pod.uid)
    const left = this.plainAvailable - others.reduce((sum, { counter }) => sum + counter, 0)
    assert.ok(left > this.minAvailable, `${left} left of ${this.minAvailable}`)
    const { maxConcurrentLag: max } = this.limits
    assert.ok(max === 0 || others.length < max, `${others.length} deletions of ${max} at a time`)
  }

  record(pod: Pod): void {
    const known = this.plain.find(({ uid }) => uid === pod.uid)
    const counter = pod.state === 'available' ? 1 : 0
    if (known === undefined) this.plain.push({ uid: pod.uid, start: this.now, version: pod.version, counter })
    else if (counter === 1) {
      known.start = Math.max(this.now, known.start + 1)
      known.version = Math.max(known.version, pod.version)
      known.counter = 1
    }
  }

  upstream(index: number, deletes: boolean): void {
    const attempt = this.attempts[index % Math.max(1, this.attempts.length)]
    if (attempt === undefined) return
    this.attempts = this.attempts.filter((other) => other !== attempt)
    const pod = this.pods.find(({ uid }) => uid === attempt.uid)
    const stands = pod !== undefined && pod.state !== 'absent' && pod.state !== 'terminating'
    if (deletes && stands && (attempt.onlyVersion ?? pod.version) === pod.version) {
      this.change(pod, pod.version % 2 === 0 ? 'terminating' : 'absent')
      return
    }
    // Not found and conflict release nothing: such a server may have deleted it at another time.
    if (!stands || deletes) return
    const release: HistoryOperation = { type: 'release', cell: 'a', uid: attempt.uid, startTime: attempt.hold }
    const { status, changed } = applyOperations(this.protector, [release], this.limits, this.now)
    if (changed) {
      this.protector = { ...this.protector, status }
      this.plain = this.plain.filter(({ uid, start }) => uid !== attempt.uid || start !== parseMicros(attempt.hold))
      assert.notEqual(attempt.hold, '', 'released by one who holds nothing')
    }
  }

  aggregate(late: number, withStreamTime: boolean): void {
    this.counted = Math.max(this.counted, this.shots.length - 1 - late)
    const shot = this.shots[this.counted]
    if (shot === undefined) return
    const streamTime = withStreamTime ? (this.shots[this.counted + 1]?.takenAt ?? this.now) : undefined
    const stateOf = (uid: string): PodState => shot.pods.get(uid)?.state ?? 'absent'
    const snapshot: CellSnapshot = { resourceVersion: `${shot.version}`, streamTime, stateOf }
    const alive = [...shot.pods.values()].filter(({ state }) => state !== 'terminating')
    const available = alive.filter(({ state }) => state === 'available').length
    const counts = { total: alive.length, available, ready: available, scheduled: available, running: available }
    const args = [
      { ...counts, nextAvailableMs: undefined },
      snapshot,
      this.limits,
      TIMEOUT_MICROS / 1000,
      this.now,
    ] as const
    const { status, changed, outdated } = aggregateCell(this.protector, 'a', ...args)
    assert.equal(outdated, false)
    if (changed) this.protector = { ...this.protector, status }
    this.plainAvailable = available
    this.plain = this.plain.filter(({ uid, start, version }) => {
      const state = stateOf(uid)
      if (state === 'terminating' || (state === 'absent' && shot.version >= version)) return false
      return (streamTime ?? 0) <= start + TIMEOUT_MICROS
    })
    for (const deletion of this.plain) deletion.counter = stateOf(deletion.uid) === 'available' ? 1 : 0
  }

  check(): void {
    const buckets = this.protector.status?.cells[0]?.admissionHistory?.buckets ?? []
    const uids = buckets.flatMap(({ podUID, podUIDs = [] }) => (podUID === undefined ? podUIDs : [podUID]))
    assert.equal(new Set(uids).size, uids.length, 'a pod is charged twice')
    for (const { uid } of this.plain) assert.ok(uids.includes(uid), `${uid} was lost`)
    const plainLeft = this.plainAvailable - this.plain.reduce((sum, { counter }) => sum + counter, 0)
    const estimated = this.protector.status?.summary.estimatedAvailableReplicas ?? 0
    assert.ok(estimated <= plainLeft, `estimated ${estimated}, by the plain ledger ${plainLeft}`)
    assert.ok(buckets.length <= this.limits.compactThreshold + 7)
    // What really matters: even if everything outstanding happens, enough pods are left.
    const doomed = new Set(this.attempts.filter(({ onlyVersion }) => onlyVersion === undefined).map(({ uid }) => uid))
    const left = this.pods.filter(({ uid, state }) => state === 'available' && !doomed.has(uid)).length
    assert.ok(this.forced > 0 || left >= this.minAvailable, `${left} pods left of ${this.minAvailable}`)
  }
}

function operationOf({ uid, state, version }: Pod, force: boolean): HistoryOperation {
  const place = { cell: 'a', uid, name: '', resourceVersion: `${version}` }
  if (state === 'alive') return { type: 'record', ...place }
  const pod: QuotaPod = { criterion: 'Available', scheduled: true, running: true, ready: true, available: true }
  return { type: 'reserve', ...place, pod, force }
}

const podIndex = fc.nat({ max: 20 })

function steps(forces: fc.Arbitrary<boolean>): fc.Arbitrary<readonly Step[]> {
  const wanted = fc.array(fc.record({ pod: podIndex, force: forces }), { minLength: 1, maxLength: 8 })
  const step = fc.oneof(
    fc.record({ do: fc.constant('wait' as const), micros: fc.oneof(fc.nat(2_000_000), fc.nat(70_000_000)) }),
    fc.record({ do: fc.constant('create' as const) }),
    fc.record({ do: fc.constant('ready' as const), pod: podIndex }),
    { weight: 3, arbitrary: fc.record({ do: fc.constant('batch' as const), pods: wanted }) },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant('upstream' as const), attempt: fc.nat(20), deletes: fc.boolean() }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('aggregate' as const), late: fc.nat(4), streamTime: fc.boolean() }),
    },
  )
  return fc.array(step, { minLength: 1, maxLength: 60, size: 'max' })
}

const limits = fc.record({
  maxConcurrentLag: fc.constantFrom(0, 0, 1, 3),
  compactThreshold: fc.constantFrom(1, 2, 4, 100),
})

for (const [name, forces] of [
  ['', fc.constant(false)],
  [', some of them forced', fc.boolean()],
] as const) {
  test(`any order of deletions, answers and late news${name}`, () => {
    const property = fc.property(fc.nat(9), limits, steps(forces), (minAvailable, few, todo) => {
      const world = new World(minAvailable, 10, { ...few, aggregationRateMs: 0, staleAfterMs: 0 })
      for (const step of todo) {
        world.step(step)
        world.check()
      }
    })
    fc.assert(property, { numRuns: 1500 })
  })
}
