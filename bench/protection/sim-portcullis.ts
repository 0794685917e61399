// The rules of Portcullis, by its own modules, in simulated time: a replica's part.

import type { PodProtector } from '../../src/api/pod-protector.ts'
import type { PodFacts } from '../../src/api/protection.ts'
import { applyOperations, type HistoryOperation, type OperationResult } from '../../src/core/protection/history.ts'
import { type HistoryLimits, limitsOf } from '../../src/core/protection/history-limits.ts'
import { freePass, judge } from '../../src/core/protection/judge.ts'
import type { QuotaPod } from '../../src/core/protection/quota.ts'
import { type BatchOutcome, SimBatch } from './sim-batch.ts'
import { keyOf, type SeenVersions } from './sim-core.ts'
import { SimReplicaBase, type SimVerdict, type World } from './sim-ledger.ts'

interface Done extends OperationResult {
  readonly seen: SeenVersions
}

interface Hold {
  readonly key: string
  readonly startTime: string
}

const PACE = { intervalMs: 75, backoffMs: 100, jitterMs: 100 }
const NOTE_WAIT_MS = 500
const LONG_MS = 60_000
const ADMITTED: ReadonlySet<string> = new Set(['Ok', 'AlreadyUnhealthy', 'AlreadyHasBucket'])

export function historyLimits(protector: PodProtector, world: World): HistoryLimits {
  return limitsOf(protector, {
    maxConcurrentLag: 0,
    compactThreshold: 100,
    aggregationRateMs: world.scenario.aggregationRateMs,
    staleAfterMs: 0,
  })
}

export class PortcullisReplica extends SimReplicaBase {
  private batches = new Map<string, SimBatch<HistoryOperation, Done>>()

  protected override forget(): void {
    this.batches = new Map()
  }

  override review(cell: string, pod: PodFacts, timeoutMs: number, done: (verdict: SimVerdict) => void): void {
    const protectors = this.matching(pod).sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    const base = { cell, uid: pod.uid, name: pod.name, resourceVersion: pod.resourceVersion }
    if (pod.terminating) {
      done(verdict('admitted', 'AlreadyTerminating'))
      return
    }
    const reserves: { key: string; operation: HistoryOperation }[] = []
    const notes: string[] = []
    /** No quota was asked of some protector: what the pod was read as has to be so still. */
    let unasked = false
    const request = { criterion: undefined, pod }
    const free = freePass(request) !== undefined
    for (const protector of protectors) {
      const key = keyOf(protector)
      const { clockSkewMs } = this.world.settings
      const judged = judge(request, protector.spec.minReadySeconds, clockSkewMs, this.nowMs)
      unasked ||= free || judged.type === 'note' || !meetsCriterion(judged.pod)
      if (free || judged.type === 'note') notes.push(key)
      else reserves.push({ key, operation: { type: 'reserve', ...base, pod: judged.pod, force: false } })
    }
    for (const { key, operation } of reserves) {
      const refusal = this.evaluate(key, operation)
      if (refusal !== undefined) {
        done(verdict('refused', text(refusal), isLimited(refusal)))
        return
      }
    }
    for (const key of notes) this.batch(key).submit({ type: 'note', ...base }, LONG_MS, NOTE_WAIT_MS, () => {})
    if (reserves.length === 0) {
      done({ ...verdict('admitted', 'free'), free: unasked })
      return
    }
    this.reserveAll(pod, reserves, timeoutMs, (result) => done({ ...result, free: unasked }))
  }

  private evaluate(key: string, operation: HistoryOperation): OperationResult | undefined {
    const protector = this.cache.get(key)
    if (protector === undefined) return undefined
    const [result] = applyOperations(
      protector,
      [operation],
      historyLimits(protector, this.world),
      this.nowMicros,
    ).results
    return result === undefined || ADMITTED.has(result.result) ? undefined : result
  }

  private reserveAll(
    pod: PodFacts,
    reserves: readonly { key: string; operation: HistoryOperation }[],
    timeoutMs: number,
    done: (verdict: SimVerdict) => void,
  ): void {
    const holds: Hold[] = []
    const seen = new Map<string, SeenVersions>()
    let open = reserves.length
    let outcome: SimVerdict['outcome'] = 'admitted'
    let limited = false
    const reasons: string[] = []
    const { incarnation } = this
    for (const { key, operation } of reserves) {
      this.batch(key).submit(operation, timeoutMs, 0, (answer) => {
        if (this.incarnation !== incarnation) return
        if (answer.type === 'failed') outcome = 'error'
        else {
          const { result } = answer
          seen.set(key, result.seen)
          reasons.push(text(result))
          limited ||= isLimited(result)
          if (result.startTime !== '') holds.push({ key, startTime: result.startTime })
          if (!ADMITTED.has(result.result) && outcome === 'admitted') outcome = 'refused'
        }
        open--
        if (open > 0) return
        const release = (): void => {
          for (const hold of holds) this.release(operation.cell, pod.uid, hold)
        }
        if (outcome !== 'admitted') release()
        done({ outcome, reason: reasons.join('; '), limited, free: false, seen, release })
      })
    }
  }

  private release(cell: string, uid: string, { key, startTime }: Hold): void {
    if (!this.up) return
    this.batch(key).submit({ type: 'release', cell, uid, startTime }, LONG_MS, 0, () => {})
  }

  private batch(key: string): SimBatch<HistoryOperation, Done> {
    const existing = this.batches.get(key)
    if (existing !== undefined) return existing
    const { incarnation } = this
    const made = new SimBatch<HistoryOperation, Done>(
      this.world.queue,
      this.random,
      PACE,
      (operations, done) => {
        if (this.incarnation === incarnation) this.write(key, operations, done)
      },
      (operation, result) => {
        if (operation.type !== 'reserve' || result.startTime === '') return
        this.release(operation.cell, operation.uid, { key, startTime: result.startTime })
      },
    )
    this.batches.set(key, made)
    return made
  }

  private write(
    key: string,
    operations: readonly HistoryOperation[],
    done: (outcome: BatchOutcome<Done>) => void,
  ): void {
    const { core } = this.world
    const protector = this.cache.get(key)
    if (protector === undefined) {
      done({ type: 'failed' })
      return
    }
    const limits = historyLimits(protector, this.world)
    const applied = applyOperations(protector, operations, limits, this.nowMicros)
    const results = (seen: SeenVersions): BatchOutcome<Done> => ({
      type: 'done',
      results: applied.results.map((result) => ({ ...result, seen })),
    })
    if (!applied.changed) {
      done(results(core.seen(key)))
      return
    }
    core.write(protector, applied.status, undefined, ({ result, object, seen }) => {
      if (object !== undefined) this.learn(object)
      if (result !== 'written') return done({ type: result === 'lost' ? 'failed' : 'conflict' })
      this.world.trace(() => `replica ${this.index} wrote ${key}: ${operations.map(describe).join(', ')}`)
      done(results(seen))
    })
  }
}

function describe(operation: HistoryOperation): string {
  return `${operation.type} ${operation.uid}`
}

function meetsCriterion({ criterion, available, ready, running, scheduled }: QuotaPod): boolean {
  return { Available: available, Ready: ready, Running: running, Scheduled: scheduled }[criterion]
}

function text({ result, count, lag, required }: OperationResult): string {
  return `${result} (${count} counted, ${lag} being deleted, ${required} required)`
}

/** Quota there was; too many deletions are not seen yet. */
function isLimited({ result, count, lag, required }: OperationResult): boolean {
  return result === 'Retry' && count - lag > required
}

function verdict(outcome: SimVerdict['outcome'], reason: string, limited = false): SimVerdict {
  return { outcome, reason, limited, free: false, seen: new Map(), release: () => {} }
}
