// What Podseidon's aggregator stands on, in simulated time: a snapshot by watch, a delayed queue of protectors, restarts.

import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import type { PodProtector } from '../../src/protection/api/pod-protector.ts'
import type { PodFacts } from '../../src/protection/api/protection.ts'
import { podFacts } from '../../src/protection/core/quota/pod-facts.ts'
import { type CellEvent, CellWatch, EPOCH_MS, type TrueCell } from './sim-cell.ts'
import { isNewer, keyOf, selects } from './sim-core.ts'
import type { World } from './sim-ledger.ts'
import { SimRandom } from './sim-queue.ts'

export abstract class SimAggregatorBase {
  protected readonly world: World
  protected readonly cell: TrueCell
  protected readonly random: SimRandom
  protected readonly cache: Map<string, PodProtector> = new Map()
  protected readonly pods: Map<string, PodFacts> = new Map()
  /** Version of the snapshot; 0 = there is none. */
  protected version = 0
  protected incarnation = 0
  private watch: CellWatch | undefined
  private readonly due = new Map<string, number>()
  private readonly busy = new Set<string>()

  constructor(world: World, cell: TrueCell) {
    this.world = world
    this.cell = cell
    this.random = new SimRandom(world.scenario.seed, `aggregator ${cell.id}`)
    for (const object of world.core.objects()) this.cache.set(keyOf(object), object)
    world.core.follow(20, new SimRandom(world.scenario.seed, `aggregator core ${cell.id}`), (object) => {
      if (!isNewer(object, this.cache.get(keyOf(object)))) return
      this.cache.set(keyOf(object), object)
      this.onProtector(keyOf(object))
    })
    for (const atMs of cell.spec.aggregatorRestartsMs) world.queue.at(atMs, () => this.restart())
    this.open()
  }

  protected abstract reconcile(key: string, protector: PodProtector, done: () => void): void
  protected abstract onStreamed(changed: readonly PodFacts[]): void
  protected onForget(): void {}

  protected get nowMs(): number {
    return EPOCH_MS + this.world.queue.now + this.cell.spec.aggregatorSkewMs
  }

  protected get nowMicros(): number {
    return Math.floor(this.nowMs * 1_000)
  }

  protected onProtector(key: string): void {
    this.enqueue(key, this.rateMs())
  }

  protected rateMs(): number {
    return this.world.scenario.aggregationRateMs * this.random.between(0.5, 1)
  }

  /** An earlier time wins. */
  protected enqueue(key: string, delayMs: number): void {
    const at = this.world.queue.now + delayMs
    const due = this.due.get(key)
    if (due !== undefined && due <= at) return
    this.due.set(key, at)
    this.world.queue.at(at, () => this.work(key, at))
  }

  private work(key: string, at: number): void {
    if (this.due.get(key) !== at) return
    this.due.delete(key)
    const protector = this.cache.get(key)
    if (this.version === 0 || protector === undefined) return
    if (this.busy.has(key)) {
      this.enqueue(key, 10)
      return
    }
    this.busy.add(key)
    this.reconcile(key, protector, () => this.busy.delete(key))
  }

  private open(): void {
    const target = {
      onList: (version: number, objects: readonly JsonObject[]): void => {
        this.pods.clear()
        const pods = objects.flatMap((object) => podFacts(object) ?? [])
        for (const pod of pods) this.pods.set(pod.uid, pod)
        this.version = version
        for (const key of this.cache.keys()) this.enqueue(key, this.rateMs())
        this.onStreamed(pods)
      },
      onEvent: ({ version, gone, facts }: CellEvent): void => {
        if (gone) this.pods.delete(facts.uid)
        else this.pods.set(facts.uid, facts)
        this.version = version
        for (const [key, protector] of this.cache)
          if (selects(protector, facts.labels)) this.enqueue(key, this.rateMs())
        this.onStreamed([facts])
      },
      onBookmark: (version: number): void => {
        this.version = version
        this.onStreamed([])
      },
    }
    const random = new SimRandom(this.world.scenario.seed, `watch ${this.cell.id} ${this.incarnation}`)
    this.watch = new CellWatch(this.cell, this.world.queue, target, random)
  }

  private restart(): void {
    this.world.trace(() => `aggregator of ${this.cell.id} crashes`)
    this.watch?.close()
    this.incarnation++
    this.version = 0
    this.pods.clear()
    this.due.clear()
    this.busy.clear()
    this.onForget()
    this.world.queue.after(this.random.between(1_000, 15_000), () => this.open())
  }
}
