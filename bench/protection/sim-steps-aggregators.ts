// The PodProtectors of a small world, and the aggregators that count its pods for them.

import { DEFAULT_PROTECTION_SETTINGS } from '../../src/process/api/protection-settings.ts'
import type { PodProtector, PodProtectorStatus } from '../../src/protection/api/pod-protector.ts'
import type { PodFacts } from '../../src/protection/api/protection.ts'
import { AdmissionTimes } from '../../src/protection/controllers/aggregator/count.ts'
import { type HistoryLimits, limitsOf } from '../../src/protection/core/history/cell-history.ts'
import { parseMicros } from '../../src/protection/core/history/micro-time.ts'
import { aggregateCell } from '../../src/protection/core/ledger/aggregate-cell.ts'
import { aggregatePods, isAvailable } from '../../src/protection/core/quota/pod-facts.ts'
import { type Step, StepsPods } from './sim-steps-pods.ts'

export type Mutation =
  | 'none'
  /** A pod that a snapshot lacks is gone, however old the snapshot. */
  | 'absent is gone'
  /** Whatever was admitted before the last event came is in the snapshot (Podseidon, D14). */
  | 'clock'
  /** Joined buckets count 1 (Podseidon, D1). */
  | 'joined counts 1'
  /** A pod that was not ready is deleted though it has changed since. */
  | 'no precondition'
  /** A second try of the same request that finds no pod takes the reservation back. */
  | 'released when gone'
  /** The list that ends a stall may be older than what was seen. */
  | 'list goes back'

export interface StepsSetup {
  readonly pods: readonly { readonly cell: 0 | 1; readonly ready: boolean }[]
  readonly minAvailable: readonly number[]
  readonly compactThreshold: number
  readonly mutation: Mutation
}

/** What an aggregation in force was made of. */
export interface Shown {
  readonly version: number
  readonly uids: ReadonlySet<string>
}

export interface StepsStore {
  object: PodProtector
  shown: readonly [Shown, Shown]
}

export interface StepsAggregator {
  /** undefined = it has no list. */
  snapshot: Map<string, PodFacts> | undefined
  version: number
  delivered: number
  stalled: boolean
  heardAt: number
  streamTime: number | undefined
  asked: { at: number; version: number } | undefined
  caches: PodProtector[]
  admissions: AdmissionTimes
  write: { protector: number; base: PodProtector; status: PodProtectorStatus; shown: Shown } | undefined
}

export const LIMITS: HistoryLimits = {
  maxConcurrentLag: 0,
  compactThreshold: 100,
  aggregationRateMs: 0,
  staleAfterMs: 0,
}
export const TIMEOUT_MS: number = DEFAULT_PROTECTION_SETTINGS.reservationTimeoutMs
/** minReadySeconds is 0. */
const ALWAYS = (): number => 0
const NOTHING: Shown = { version: 0, uids: new Set() }

export abstract class StepsAggregators extends StepsPods {
  protected readonly stores: readonly StepsStore[]
  protected readonly aggregators: readonly [StepsAggregator, StepsAggregator]
  protected readonly mutation: Mutation

  constructor({ pods, minAvailable, compactThreshold, mutation }: StepsSetup) {
    super()
    this.mutation = mutation
    for (const { cell, ready } of pods) this.create(cell, ready)
    this.stores = minAvailable.map((min, index) => ({
      object: protectorObject(index, min, compactThreshold),
      shown: [NOTHING, NOTHING],
    }))
    const objects = (): PodProtector[] => this.stores.map(({ object }) => object)
    const aggregator = (): StepsAggregator => ({
      snapshot: undefined,
      version: 0,
      delivered: 0,
      stalled: false,
      heardAt: 0,
      streamTime: undefined,
      asked: undefined,
      caches: objects(),
      admissions: new AdmissionTimes(),
      write: undefined,
    })
    this.aggregators = [aggregator(), aggregator()]
    for (const cell of [0, 1]) {
      this.relist(cell)
      this.stores.forEach((_, protector) => {
        this.compute(cell, protector)
        this.writeAggregation(cell)
        for (const { caches } of this.aggregators) caches[protector] = this.object(protector)
      })
    }
  }

  protected aggregatorSteps(cell: 0 | 1, steps: Step[]): void {
    const aggregator = this.aggregators[cell]
    const { snapshot, version, caches, write } = aggregator
    const next = this.events[cell][aggregator.delivered]
    const old = this.mutation === 'list goes back'
    if (snapshot !== undefined) {
      const { stalled } = aggregator
      steps.push([
        `watch of ${cell} ${stalled ? 'goes on' : 'stalls'}`,
        () => {
          aggregator.stalled = !stalled
        },
        0.5,
      ])
      if (next !== undefined && !stalled)
        steps.push([`${cell} delivers ${next.facts.name}`, () => this.deliver(cell), 4])
      if (next === undefined && version < this.versions[cell])
        steps.push([`${cell} bookmark`, () => this.bookmark(cell), 1])
      steps.push([`aggregator ${cell} asks the time`, () => this.askStreamTime(cell), 0.5])
      steps.push([
        `aggregator ${cell} restarts`,
        () => {
          aggregator.snapshot = undefined
          aggregator.admissions = new AdmissionTimes()
        },
        0.2,
      ])
      this.stores.forEach((_, protector) => {
        steps.push([`aggregator ${cell} counts ${protector}`, () => this.compute(cell, protector), 3])
      })
    }
    if (write !== undefined) steps.push([`aggregator ${cell} writes`, () => this.writeAggregation(cell), 6])
    steps.push([`${cell} lists`, () => this.relist(cell), snapshot === undefined ? 3 : 0.3])
    if (old) steps.push([`${cell} lists from a cache`, () => this.relistOld(cell), 1])
    caches.forEach((cached, protector) => {
      if (cached === this.object(protector)) return
      const name = `aggregator ${cell} sees ${protector}`
      steps.push([
        name,
        () => {
          caches[protector] = this.object(protector)
        },
        4,
      ])
    })
  }

  protected object(protector: number): PodProtector {
    const store = this.stores[protector]
    if (store === undefined) throw new Error(`no protector ${protector}`)
    return store.object
  }

  /** @returns whether it was written */
  protected swap(protector: number, base: PodProtector, status: PodProtectorStatus): boolean {
    const store = this.stores[protector]
    if (store === undefined || store.object.metadata.resourceVersion !== base.metadata.resourceVersion) return false
    const resourceVersion = String(Number(base.metadata.resourceVersion) + 1)
    store.object = { ...base, metadata: { ...base.metadata, resourceVersion }, status }
    return true
  }

  protected relist(cell: number): void {
    const aggregator = this.aggregators[cell === 0 ? 0 : 1]
    const living = this.pods.filter((pod) => pod.cell === cell && !pod.gone)
    aggregator.stalled = false
    aggregator.snapshot = new Map(living.map(({ facts }) => [facts.uid, facts]))
    aggregator.delivered = this.eventsOf(cell).length
    this.onVersion(aggregator, this.versions[cell === 0 ? 0 : 1])
  }

  /** As it was some events ago. */
  protected relistOld(cell: number): void {
    const aggregator = this.aggregators[cell === 0 ? 0 : 1]
    const upTo = Math.max(0, this.eventsOf(cell).length - 3)
    aggregator.snapshot = new Map()
    aggregator.delivered = 0
    aggregator.version = 0
    for (let i = 0; i < upTo; i++) this.deliver(cell)
  }

  protected deliver(cell: number): void {
    const aggregator = this.aggregators[cell === 0 ? 0 : 1]
    const event = this.eventsOf(cell)[aggregator.delivered]
    if (event === undefined || aggregator.snapshot === undefined) return
    aggregator.delivered++
    if (event.gone) aggregator.snapshot.delete(event.facts.uid)
    else aggregator.snapshot.set(event.facts.uid, event.facts)
    this.onVersion(aggregator, event.version)
  }

  protected bookmark(cell: 0 | 1): void {
    this.onVersion(this.aggregators[cell], this.versions[cell])
  }

  protected onVersion(aggregator: StepsAggregator, version: number): void {
    aggregator.version = version
    aggregator.heardAt = this.now
    if (aggregator.asked === undefined || aggregator.asked.version > version) return
    aggregator.streamTime = aggregator.asked.at
    aggregator.asked = undefined
  }

  protected askStreamTime(cell: 0 | 1): void {
    const aggregator = this.aggregators[cell]
    aggregator.asked = { at: this.now, version: this.versions[cell] }
    if (aggregator.version >= this.versions[cell]) this.onVersion(aggregator, aggregator.version)
  }

  protected compute(cell: number, protector: number): void {
    const aggregator = this.aggregators[cell === 0 ? 0 : 1]
    const { snapshot, streamTime, version } = aggregator
    const base = aggregator.caches[protector]
    if (snapshot === undefined || base === undefined) return
    const selected = protector === 0 || cell === 0 ? [...snapshot.values()] : []
    const counts = aggregatePods(selected, 0, ALWAYS)
    const made = aggregateCell(
      this.mutation === 'clock' ? withoutOld(base, `cell-${cell}`, aggregator.heardAt) : base,
      `cell-${cell}`,
      counts,
      {
        resourceVersion: this.mutation === 'absent is gone' ? '9999999' : String(version),
        restored: this.mutation === 'list goes back',
        streamTime: streamTime === undefined ? undefined : streamTime * 1_000,
        heardAt: aggregator.heardAt * 1_000,
        knownSince: aggregator.admissions.of(String(protector), this.now * 1_000),
        stateOf: (uid) => {
          const pod = snapshot.get(uid)
          if (pod === undefined) return 'absent'
          if (pod.terminating) return 'terminating'
          return selected.includes(pod) && isAvailable(pod, 0, ALWAYS) ? 'available' : 'alive'
        },
      },
      limitsOf(base, LIMITS),
      TIMEOUT_MS,
      this.now * 1_000,
    )
    const uids = selected.filter((pod) => isAvailable(pod, 0, ALWAYS)).map(({ uid }) => uid)
    if (made.changed)
      aggregator.write = { protector, base, status: made.status, shown: { version, uids: new Set(uids) } }
  }

  protected writeAggregation(cell: number): void {
    const index = cell === 0 ? 0 : 1
    const { write } = this.aggregators[index]
    this.aggregators[index].write = undefined
    if (write === undefined || !this.swap(write.protector, write.base, write.status)) return
    const store = this.stores[write.protector]
    if (store === undefined) return
    store.shown = index === 0 ? [write.shown, store.shown[1]] : [store.shown[0], write.shown]
  }
}

function protectorObject(index: number, minAvailable: number, compactThreshold: number): PodProtector {
  return {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { namespace: 'default', name: `protector-${index}`, uid: `protector-${index}`, resourceVersion: '1' },
    spec: { minAvailable, minReadySeconds: 0, selector: {}, admissionHistoryConfig: { compactThreshold } },
  }
}

function withoutOld(protector: PodProtector, cellID: string, heardAtMs: number): PodProtector {
  const { status } = protector
  if (status === undefined) return protector
  const cells = status.cells.map((cell) => {
    if (cell.cellID !== cellID) return cell
    const buckets = cell.admissionHistory?.buckets ?? []
    const kept = buckets.filter(({ endTime, startTime }) => parseMicros(endTime ?? startTime) >= heardAtMs * 1_000)
    return { ...cell, admissionHistory: { buckets: kept } }
  })
  return { ...protector, status: { ...status, cells } }
}
