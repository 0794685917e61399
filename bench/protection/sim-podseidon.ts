// Podseidon's webhook and aggregator (clock mode, its default) in simulated time.

import type { PodProtector } from '../../src/api/pod-protector.ts'
import type { PodFacts } from '../../src/api/protection.ts'
import { aggregatePods } from '../../src/core/protection/aggregate-pods.ts'
import { type PodseidonItem, type PodseidonResult, podseidonAggregate, podseidonBatch } from './podseidon-algorithm.ts'
import { SimAggregatorBase } from './sim-aggregator.ts'
import { type BatchOutcome, SimBatch } from './sim-batch.ts'
import { keyOf, type SeenVersions, selects } from './sim-core.ts'
import { SimReplicaBase, type SimVerdict } from './sim-ledger.ts'
import { historyLimits } from './sim-portcullis.ts'

interface Done {
  readonly result: PodseidonResult
  readonly seen: SeenVersions
  /** Quota there was. */
  readonly limited: boolean
}

const PACE = { intervalMs: 0, backoffMs: 100, jitterMs: 200 }

export class PodseidonReplica extends SimReplicaBase {
  private batches = new Map<string, SimBatch<PodseidonItem, Done>>()

  protected override forget(): void {
    this.batches = new Map()
  }

  override review(cell: string, pod: PodFacts, timeoutMs: number, done: (verdict: SimVerdict) => void): void {
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
    const counts = aggregatePods(living, protector.spec.minReadySeconds, this.nowMs)
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
