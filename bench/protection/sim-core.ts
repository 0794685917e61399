// The core cluster's store of PodProtectors: compare-and-swap on /status, late watches, answers that get lost.

import type { PodProtector, PodProtectorStatus } from '../../src/protection/api/pod-protector.ts'
import { type SimQueue, SimRandom } from './sim-queue.ts'
import type { Scenario, SimProtector } from './sim-scenario.ts'

export type WriteResult = 'written' | 'conflict' | 'lost'

/** Version of each cell's pods that the aggregation of a protector in force shows, by cell id. */
export type SeenVersions = ReadonlyMap<string, number>

interface Stored {
  object: PodProtector
  seen: SeenVersions
}

export interface WriteAnswer {
  readonly result: WriteResult
  readonly object: PodProtector | undefined
  /** As they were when it was written. */
  readonly seen: SeenVersions
}

export class CoreStore {
  ledgerWrites = 0
  aggregatorWrites = 0
  conflicts = 0
  private readonly stored = new Map<string, Stored>()
  private readonly followers = new Set<(object: PodProtector) => void>()
  private readonly queue: SimQueue
  private readonly random: SimRandom
  private readonly latencyMs: number

  constructor(scenario: Scenario, queue: SimQueue) {
    this.queue = queue
    this.latencyMs = scenario.coreLatencyMs
    this.random = new SimRandom(scenario.seed, 'core')
    for (const spec of scenario.protectors)
      this.stored.set(spec.key, { object: protectorObject(spec, scenario.aggregationRateMs), seen: new Map() })
  }

  objects(): PodProtector[] {
    return [...this.stored.values()].map(({ object }) => object)
  }

  get(key: string): PodProtector | undefined {
    return this.stored.get(key)?.object
  }

  seen(key: string): SeenVersions {
    return this.stored.get(key)?.seen ?? new Map()
  }

  /** As it is now, after the way there and back. */
  read(key: string, done: (object: PodProtector | undefined) => void): void {
    this.queue.after(this.random.wait(this.latencyMs, 2_000), () => {
      const object = this.get(key)
      this.queue.after(this.random.wait(this.latencyMs, 2_000), () => done(object))
    })
  }

  /** Each change comes, in order, after a wait that `lagMs` is the mean of. */
  follow(lagMs: number, random: SimRandom, onChange: (object: PodProtector) => void): void {
    let last = 0
    this.followers.add((object) => {
      last = Math.max(last, this.queue.now + random.wait(lagMs, 10 * lagMs))
      this.queue.at(last, () => onChange(object))
    })
  }

  /** `aggregated`: by an aggregator, whose counts are of this version of a cell. */
  write(
    base: PodProtector,
    status: PodProtectorStatus,
    aggregated: { readonly cell: string; readonly version: number } | undefined,
    done: (answer: WriteAnswer) => void,
  ): void {
    const lost = this.random.chance(0.005)
    this.queue.after(this.random.wait(this.latencyMs, 2_000), () => {
      const answer = this.swap(base, status, aggregated)
      if (lost) {
        this.queue.after(1_000, () => done({ ...answer, result: 'lost', object: undefined }))
        return
      }
      this.queue.after(this.random.wait(this.latencyMs, 2_000), () => done(answer))
    })
  }

  private swap(
    base: PodProtector,
    status: PodProtectorStatus,
    aggregated: { readonly cell: string; readonly version: number } | undefined,
  ): WriteAnswer {
    const key = keyOf(base)
    const stored = this.stored.get(key)
    if (stored === undefined || stored.object.metadata.resourceVersion !== base.metadata.resourceVersion) {
      this.conflicts++
      return { result: 'conflict', object: undefined, seen: new Map() }
    }
    if (aggregated === undefined) this.ledgerWrites++
    else {
      this.aggregatorWrites++
      stored.seen = new Map(stored.seen).set(aggregated.cell, aggregated.version)
    }
    const { object } = stored
    const resourceVersion = String(Number(base.metadata.resourceVersion) + 1)
    stored.object = { ...object, metadata: { ...object.metadata, resourceVersion }, status }
    for (const follower of this.followers) follower(stored.object)
    return { result: 'written', object: stored.object, seen: stored.seen }
  }
}

export function keyOf({ metadata }: PodProtector): string {
  return `${metadata.namespace}/${metadata.name}`
}

/** Whether `a` is a later version than `b`. */
export function isNewer(a: PodProtector, b: PodProtector | undefined): boolean {
  return b === undefined || Number(a.metadata.resourceVersion) > Number(b.metadata.resourceVersion)
}

export function selects(protector: PodProtector, labels: Readonly<Record<string, string>>): boolean {
  const wanted = Object.entries(protector.spec.selector.matchLabels ?? {})
  return wanted.every(([key, value]) => labels[key] === value)
}

function protectorObject(spec: SimProtector, aggregationRateMillis: number): PodProtector {
  const [namespace = '', name = ''] = spec.key.split('/')
  return {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { namespace, name, uid: spec.key, resourceVersion: '1' },
    spec: {
      minAvailable: spec.minAvailable,
      minReadySeconds: spec.minReadySeconds,
      selector: spec.selects === 'all' ? {} : { matchLabels: { app: spec.selects } },
      admissionHistoryConfig: {
        maxConcurrentLag: spec.maxConcurrentLag,
        compactThreshold: spec.compactThreshold,
        aggregationRateMillis,
      },
    },
  }
}
