// Who judges deletions in a run, and who counts pods: what both algorithms have to be.

import type { PodProtector } from '../../src/api/pod-protector.ts'
import type { PodFacts } from '../../src/api/protection.ts'
import { EPOCH_MS } from './sim-cell.ts'
import type { CoreStore, SeenVersions } from './sim-core.ts'
import { isNewer, keyOf, selects } from './sim-core.ts'
import { type SimQueue, SimRandom } from './sim-queue.ts'
import type { Scenario } from './sim-scenario.ts'

export interface SimSettings {
  /** Portcullis: a free pass is forwarded with the resourceVersion of the pod as a precondition. */
  readonly versionPrecondition: boolean
  /** Portcullis: by how much longer than minReadySeconds a pod has to be ready to be counted. */
  readonly availabilityMarginMs: number
  readonly clockSkewMs: number
  readonly reservationTimeoutMs: number
  /** Portcullis: 404 and 409 of upstream are refusals too. */
  readonly releaseWhenGone: boolean
}

export interface SimVerdict {
  readonly outcome: 'admitted' | 'refused' | 'error'
  readonly reason: string
  /** Refused for maxConcurrentLag alone. */
  readonly limited: boolean
  /** No quota was asked of some protector, for the pod was not ready. */
  readonly free: boolean
  readonly seen: ReadonlyMap<string, SeenVersions>
  /** Upstream has refused. */
  release(): void
}

export interface World {
  readonly scenario: Scenario
  readonly settings: SimSettings
  readonly queue: SimQueue
  readonly core: CoreStore
  trace(text: () => string): void
}

/** A replica of the gateway, or of the webhook. */
export abstract class SimReplicaBase {
  /** Changes when the process starts anew. */
  incarnation = 0
  up = true
  readonly index: number
  protected readonly world: World
  protected readonly random: SimRandom
  protected readonly cache: Map<string, PodProtector> = new Map()
  private readonly skewMs: number

  constructor(world: World, index: number) {
    const spec = world.scenario.replicas[index]
    this.index = index
    this.world = world
    this.skewMs = spec?.skewMs ?? 0
    this.random = new SimRandom(world.scenario.seed, `replica ${index}`)
    this.fill()
    world.core.follow(spec?.watchLagMs ?? 0, new SimRandom(world.scenario.seed, `replica watch ${index}`), (object) =>
      this.learn(object),
    )
    for (const atMs of spec?.restartsMs ?? []) world.queue.at(atMs, () => this.restart())
  }

  abstract review(cell: string, pod: PodFacts, timeoutMs: number, done: (verdict: SimVerdict) => void): void

  protected abstract forget(): void

  protected get nowMs(): number {
    return EPOCH_MS + this.world.queue.now + this.skewMs
  }

  protected get nowMicros(): number {
    return Math.floor(this.nowMs * 1_000)
  }

  protected learn(object: PodProtector): void {
    if (this.up && isNewer(object, this.cache.get(keyOf(object)))) this.cache.set(keyOf(object), object)
  }

  protected matching(pod: PodFacts): PodProtector[] {
    return [...this.cache.values()].filter((protector) => selects(protector, pod.labels))
  }

  private fill(): void {
    for (const object of this.world.core.objects()) this.cache.set(keyOf(object), object)
  }

  private restart(): void {
    this.world.trace(() => `replica ${this.index} crashes`)
    this.up = false
    this.incarnation++
    this.cache.clear()
    this.forget()
    this.world.queue.after(this.random.between(500, 5_000), () => {
      this.up = true
      this.fill()
    })
  }
}
