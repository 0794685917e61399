// Deletions in a small world: from the filter or the webhook through the ledger to upstream.

import type { PodProtector, PodProtectorStatus } from '../../src/protection/api/pod-protector.ts'
import type { PodFacts } from '../../src/protection/api/protection.ts'
import { limitsOf } from '../../src/protection/core/history/cell-history.ts'
import { applyOperations, type HistoryOperation } from '../../src/protection/core/ledger/history.ts'
import { evaluateDeletion, freePass } from '../../src/protection/core/quota/quota.ts'
import { LIMITS, type Shown, StepsAggregators, type StepsSetup, TIMEOUT_MS } from './sim-steps-aggregators.ts'
import type { Step, StepsPod } from './sim-steps-pods.ts'

export interface StepsDeletion {
  readonly pod: StepsPod
  readonly via: 'filter' | 'webhook'
  replica: number
  facts: PodFacts
  stage: 'asking' | 'admitted' | 'forwarded' | 'over'
  askedAt: number
  todo: number[]
  holds: { protector: number; startTime: string }[]
  readonly shown: Map<number, readonly [Shown, Shown]>
  reserved: boolean
  unasked: boolean
}

/** What is written when there is time for it. */
export interface Late {
  readonly replica: number
  readonly protector: number
  readonly operation: HistoryOperation
}

const PASSES: ReadonlySet<string> = new Set(['Ok', 'AlreadyUnhealthy', 'AlreadyHasBucket'])

export abstract class StepsLedger extends StepsAggregators {
  protected readonly replicas: PodProtector[][]
  protected deletions: StepsDeletion[] = []
  protected late: Late[] = []

  constructor(setup: StepsSetup) {
    super(setup)
    const objects = (): PodProtector[] => this.stores.map(({ object }) => object)
    this.replicas = [objects(), objects()]
  }

  /** Right before it is committed. */
  protected abstract checkDeletion(deletion: StepsDeletion): void

  protected replicaSteps(steps: Step[]): void {
    this.late.forEach((late, index) => {
      const { replica, protector, operation } = late
      const name = `${replica} writes ${operation.type} of ${operation.uid} to ${protector}`
      steps.push([name, () => this.writeLate(late, index), 2])
    })
    this.replicas.forEach((caches, replica) => {
      caches.forEach((cached, protector) => {
        if (cached === this.object(protector)) return
        steps.push([
          `${replica} sees ${protector}`,
          () => {
            caches[protector] = this.object(protector)
          },
          4,
        ])
      })
      steps.push([`${replica} crashes`, () => this.crash(replica), 0.2])
    })
  }

  protected deletionSteps(deletion: StepsDeletion, steps: Step[]): void {
    const { pod, via, stage } = deletion
    const name = `${via} deletion of ${pod.facts.name}`
    const [protector] = deletion.todo
    if (stage === 'asking' && protector !== undefined) {
      steps.push([`${name}: ${deletion.replica} reserves in ${protector}`, () => this.reserve(deletion, protector), 8])
    }
    if (stage === 'admitted')
      steps.push([
        `${name} is forwarded`,
        () => {
          deletion.stage = 'forwarded'
        },
        4,
      ])
    if (stage !== 'forwarded') return
    steps.push([`${name} is committed`, () => this.commit(deletion, 'answered'), 2])
    steps.push([`${name} is committed, the answer lost`, () => this.commit(deletion, 'lost'), 0.5])
    steps.push([`${name} is refused`, () => this.refuse(deletion), 0.5])
    steps.push([`${name} is refused, the answer lost`, () => this.end(deletion), 0.3])
    if (via === 'filter')
      steps.push([`${name} is committed, and tried once more`, () => this.commit(deletion, 'resent'), 0.5])
  }

  protected protectorsOf(pod: StepsPod): number[] {
    return this.stores.map((_, index) => index).filter((index) => index === 0 || pod.cell === 0)
  }

  protected begin(pod: StepsPod, via: StepsDeletion['via'], replica: number): void {
    const deletion: StepsDeletion = {
      pod,
      via,
      replica,
      facts: pod.facts,
      stage: 'asking',
      askedAt: this.now,
      todo: [],
      holds: [],
      shown: new Map(),
      reserved: false,
      unasked: false,
    }
    this.deletions.push(deletion)
    this.evaluateDeletion(deletion)
  }

  /** What the pod alone decides; and whether some protector refuses by what its replica knows. */
  protected evaluateDeletion(deletion: StepsDeletion): void {
    const { pod, facts, replica } = deletion
    deletion.stage = 'asking'
    deletion.askedAt = this.now
    deletion.unasked = freePass({ criterion: undefined, pod: facts }) !== undefined
    const protectors = this.protectorsOf(pod)
    if (!deletion.unasked) {
      const refused = protectors.some((protector) => {
        const cached = this.replicas[replica]?.[protector]
        return cached === undefined || !PASSES.has(this.apply(cached, this.reservation(deletion)).result)
      })
      if (refused) {
        this.end(deletion)
        return
      }
      deletion.todo = protectors
      return
    }
    deletion.todo = []
    deletion.stage = 'admitted'
    for (const protector of protectors) {
      const { uid, name, resourceVersion } = facts
      const operation: HistoryOperation = { type: 'record', cell: `cell-${pod.cell}`, uid, name, resourceVersion }
      this.late.push({ replica, protector, operation })
    }
  }

  protected reservation({ pod, facts }: StepsDeletion): HistoryOperation {
    const { uid, name, resourceVersion } = facts
    const evaluated = evaluateDeletion({ criterion: undefined, pod: facts }, 0, undefined, TIMEOUT_MS)
    if (evaluated.type === 'record') throw new Error('an unready pod is not reserved')
    return { type: 'reserve', cell: `cell-${pod.cell}`, uid, name, resourceVersion, pod: evaluated.pod, force: false }
  }

  protected apply(
    base: PodProtector,
    operation: HistoryOperation,
  ): { result: string; startTime: string; status: PodProtectorStatus; changed: boolean } {
    const { status, changed, results } = applyOperations(base, [operation], limitsOf(base, LIMITS), this.now * 1_000)
    const [result] = results
    return { result: result?.result ?? '', startTime: result?.startTime ?? '', status: this.broken(status), changed }
  }

  protected broken(status: PodProtectorStatus): PodProtectorStatus {
    if (this.mutation !== 'joined counts 1') return status
    const cells = status.cells.map((cell) => {
      const buckets = cell.admissionHistory?.buckets ?? []
      const joined = buckets.map((bucket) =>
        bucket.endTime === undefined ? bucket : { ...bucket, counter: 1, podUIDs: [] },
      )
      return { ...cell, admissionHistory: { buckets: joined } }
    })
    return { ...status, cells }
  }

  protected reserve(deletion: StepsDeletion, protector: number): void {
    const caches = this.replicas[deletion.replica]
    const cached = caches?.[protector]
    if (caches === undefined || cached === undefined) return
    const { result, startTime, status, changed } = this.apply(cached, this.reservation(deletion))
    if (changed && !this.swap(protector, cached, status)) return
    if (changed) caches[protector] = this.object(protector)
    if (!PASSES.has(result)) {
      this.release(deletion)
      this.end(deletion)
      return
    }
    if (startTime !== '') deletion.holds.push({ protector, startTime })
    const shown = this.stores[protector]?.shown
    if (shown !== undefined) deletion.shown.set(protector, shown)
    deletion.todo = deletion.todo.filter((other) => other !== protector)
    if (deletion.todo.length > 0) return
    deletion.stage = 'admitted'
    deletion.reserved = true
  }

  protected release({ replica, holds, facts, pod }: StepsDeletion): void {
    for (const { protector, startTime } of holds.splice(0)) {
      this.late.push({
        replica,
        protector,
        operation: { type: 'release', cell: `cell-${pod.cell}`, uid: facts.uid, startTime },
      })
    }
  }

  protected writeLate({ replica, protector, operation }: Late, index: number): void {
    const caches = this.replicas[replica]
    const cached = caches?.[protector]
    if (caches === undefined || cached === undefined) return
    const { status, changed } = this.apply(cached, operation)
    if (changed && !this.swap(protector, cached, status)) return
    caches[protector] = this.object(protector)
    this.late.splice(index, 1)
  }

  protected crash(replica: number): void {
    for (const deletion of this.deletions) {
      if (deletion.replica === replica && deletion.stage !== 'forwarded') this.end(deletion)
    }
    this.late = this.late.filter((late) => late.replica !== replica)
  }

  protected end(deletion: StepsDeletion): void {
    deletion.stage = 'over'
    this.deletions = this.deletions.filter((other) => other !== deletion)
  }

  protected commit(deletion: StepsDeletion, answer: 'answered' | 'lost' | 'resent'): void {
    const { pod, facts, via } = deletion
    if (pod.gone || pod.facts.terminating) {
      this.end(deletion)
      return
    }
    const strict = via === 'webhook' || (deletion.unasked && this.mutation !== 'no precondition')
    if (strict && pod.facts !== facts) {
      // It has changed since: the webhook is asked once more, or the filter reads it again.
      deletion.facts = pod.facts
      deletion.replica = 1 - deletion.replica
      this.evaluateDeletion(deletion)
      return
    }
    this.checkDeletion(deletion)
    pod.taken = pod.facts.ready
    // In one cell there is no grace.
    if (pod.cell === 1) this.remove(pod)
    else this.change(pod, { terminating: true })
    if (answer === 'resent' && this.mutation === 'released when gone') this.release(deletion)
    this.end(deletion)
  }

  protected refuse(deletion: StepsDeletion): void {
    // The webhook is not told.
    if (deletion.via === 'filter') this.release(deletion)
    this.end(deletion)
  }
}
