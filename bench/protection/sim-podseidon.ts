// Podseidon's webhook and aggregator (clock mode, its default) in simulated time.

import type { PodProtector } from '../../src/protection/api/pod-protector.ts'
import type { PodFacts } from '../../src/protection/api/protection.ts'
import { type HistoryLimits, limitsOf } from '../../src/protection/core/history/cell-history.ts'
import { aggregatePods } from '../../src/protection/core/quota/pod-facts.ts'
import { type PodseidonItem, type PodseidonResult, podseidonAggregate, podseidonBatch } from './podseidon-algorithm.ts'
import { SimAggregatorBase } from './sim-aggregator.ts'
import { type BatchOutcome, SimBatch } from './sim-batch.ts'
import { EPOCH_MS } from './sim-cell.ts'
import { isNewer, keyOf, type SeenVersions, selects } from './sim-core.ts'
import type { SimReplica, SimVerdict, World } from './sim-ledger.ts'
import { SimRandom } from './sim-queue.ts'

interface Done {
  readonly result: PodseidonResult
  readonly seen: SeenVersions
  /** Quota there was. */
  readonly limited: boolean
}

const PACE = { intervalMs: 0, backoffMs: 100, jitterMs: 200 }

function historyLimits(protector: PodProtector, world: World): HistoryLimits {
  return limitsOf(protector, world.settings)
}

export class PodseidonReplica implements SimReplica {
  incarnation = 0
  up = true
  private readonly index: number
  private readonly world: World
  private readonly random: SimRandom
  private readonly cache: Map<string, PodProtector> = new Map()
  private readonly skewMs: number
  private batches = new Map<string, SimBatch<PodseidonItem, Done>>()

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

  private get nowMs(): number {
    return EPOCH_MS + this.world.queue.now + this.skewMs
  }

  private get nowMicros(): number {
    return Math.floor(this.nowMs * 1_000)
  }

  private learn(object: PodProtector): void {
    if (this.up && isNewer(object, this.cache.get(keyOf(object)))) this.cache.set(keyOf(object), object)
  }

  private matching(pod: PodFacts): PodProtector[] {
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
    this.batches = new Map()
    this.world.queue.after(this.random.between(500, 5_000), () => {
      this.up = true
      this.fill()
    })
  }

  review(cell: string, pod: PodFacts, timeoutMs: number, done: (verdict: SimVerdict) => void): void {
    const seen = new Map<string, SeenVersions>()
    const verdict = (outcome: SimVerdict['outcome'], reason: string, limited = false): void =>
      done({ outcome, reason, limited, free: false, seen, release: () => {} })
    if (pod.terminating || !pod.ready) {
      verdict('admitted', 'free')
      return
    }
    const protectors = this.matching(pod)
    if (this.random.chance(0.5)) protectors.reverse()
    const next = (): void => {
      const protector = protectors.shift()
      if (protector === undefined) {
        verdict('admitted', 'all')
        return
      }
      const readyForMs = this.nowMs - pod.readySinceMs
      if (readyForMs < protector.spec.minReadySeconds * 1_000) {
        next()
        return
      }
      const key = keyOf(protector)
      const { criterion, scheduled, running, ready } = pod
      const item = { cell, uid: pod.uid, pod: { criterion, scheduled, running, ready, available: true } }
      this.batch(key).submit(item, timeoutMs, 0, (answer) => {
        if (answer.type === 'failed') return verdict('error', 'no answer')
        const { result } = answer.result
        seen.set(key, answer.result.seen)
        if (result === 'Denied' || result === 'Retry') {
          return verdict('refused', result, result === 'Retry' && answer.result.limited)
        }
        next()
      })
    }
    next()
  }

  private batch(key: string): SimBatch<PodseidonItem, Done> {
    const existing = this.batches.get(key)
    if (existing !== undefined) return existing
    const { incarnation } = this
    const made = new SimBatch<PodseidonItem, Done>(
      this.world.queue,
      this.random,
      PACE,
      (items, done) => {
        if (this.incarnation === incarnation) this.write(key, items, done)
      },
      () => {},
    )
    this.batches.set(key, made)
    return made
  }

  private write(key: string, items: readonly PodseidonItem[], done: (outcome: BatchOutcome<Done>) => void): void {
    const { core } = this.world
    const protector = this.cache.get(key)
    if (protector === undefined) {
      done({ type: 'failed' })
      return
    }
    const applied = podseidonBatch(protector, items, historyLimits(protector, this.world), this.nowMicros)
    const limited = (applied.status.summary.estimatedAvailableReplicas ?? 0) > protector.spec.minAvailable
    const results = (seen: SeenVersions): BatchOutcome<Done> => ({
      type: 'done',
      results: applied.results.map((result) => ({ result, seen, limited })),
    })
    if (!applied.changed) {
      done(results(core.seen(key)))
      return
    }
    core.write(protector, applied.status, undefined, ({ result, object, seen }) => {
      if (object !== undefined) this.learn(object)
      if (result !== 'written') return done({ type: result === 'lost' ? 'failed' : 'conflict' })
      this.world.trace(() => `webhook ${this.index} wrote ${key}: ${items.map(({ uid }) => uid).join(', ')}`)
      done(results(seen))
    })
  }
}

export class PodseidonAggregator extends SimAggregatorBase {
  private syncTime = 0
  private readonly nextEvent = new Set<string>()

  protected override onForget(): void {
    this.syncTime = 0
    this.nextEvent.clear()
  }

  /** Each pod of a list is an event; bookmarks are none. */
  protected override onStreamed(changed: readonly PodFacts[]): void {
    if (changed.length === 0 && this.syncTime !== 0) return
    this.syncTime = this.nowMicros
    for (const key of this.nextEvent) this.enqueue(key, this.rateMs())
    this.nextEvent.clear()
  }

  protected override reconcile(key: string, protector: PodProtector, done: () => void): void {
    const selected = [...this.pods.values()].filter(({ labels }) => selects(protector, labels))
    const living = selected.filter(({ terminating }) => !terminating)
    const { nowMs } = this
    const readyFor = ({ readySinceMs }: PodFacts): number => nowMs - readySinceMs
    const counts = aggregatePods(living, protector.spec.minReadySeconds, readyFor)
    const { cell, version, incarnation } = this
    const { core, queue } = this.world
    if (counts.nextAvailableMs !== undefined) this.enqueue(key, counts.nextAvailableMs + 1)
    // The pods are listed first, the time is read after.
    queue.after(this.random.between(0.2, 3), () => {
      if (incarnation !== this.incarnation) return
      const limits = historyLimits(protector, this.world)
      const made = podseidonAggregate(protector, cell.id, counts, this.syncTime, limits)
      if (made.kept) this.nextEvent.add(key)
      if (!made.changed) return done()
      core.write(protector, made.status, { cell: cell.id, version }, ({ result }) => {
        if (incarnation !== this.incarnation) return
        done()
        if (result !== 'written') this.enqueue(key, 10)
        else
          this.world.trace(
            () => `aggregator of ${cell.id} wrote ${key} at version ${version}, ${counts.available} available`,
          )
      })
    })
  }
}
