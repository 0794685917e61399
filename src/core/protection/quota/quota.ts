// Whether a deletion would leave too few pods (Podseidon's webhook/handler/disruptionquota). A quota is counted in available,
// ready, running or scheduled pods, as the pod's health criterion has it.

import type { PodProtector } from '../../../api/pod-protector/pod-protector.ts'
import type { HealthCriterion } from '../../../api/ports/protection.ts'
import { type CellHistory, isStale, readCells } from '../history/cell-history.ts'
import { deletionsOf, MAX_COUNT } from '../history/entry.ts'
import type { HistoryLimits } from '../history/limits.ts'

export type QuotaResult =
  | 'Ok'
  /** The pod does not meet its own criterion: nothing is lost with it. */
  | 'AlreadyUnhealthy'
  /** Too few would be left. */
  | 'Denied'
  /** May pass when deletions that were admitted before are seen to have happened, or not to. */
  | 'Retry'

export interface QuotaState {
  /** Pods as they were counted in all cells that are not stale. */
  readonly available: number
  readonly ready: number
  readonly running: number
  readonly scheduled: number
  /** By how much fewer will be available for deletions that were admitted and not yet counted. */
  readonly lagAvailable: number
  /** How many such deletions there are: of them it is not known what they take from the other counts. */
  readonly lagOthers: number
  /** With so many, or fewer, no pod is deleted. */
  readonly reject: number
  /** Deletions that may still be admitted before the aggregators catch up; undefined = any number. */
  readonly remaining: number | undefined
}

/** A pod as it is evaluated. */
export interface QuotaPod {
  readonly criterion: HealthCriterion
  readonly scheduled: boolean
  readonly running: boolean
  readonly ready: boolean
  readonly available: boolean
  /**
   * Not available, and time alone may make it so before it is deleted. It is in no count: it may go as long as no fewer than
   * required are left without it. Default false.
   */
  readonly young?: boolean
}

export interface QuotaEvaluation {
  readonly result: QuotaResult
  /** For messages: pods counted, deletions deducted, and how many have to stay. */
  readonly count: number
  readonly lag: number
  readonly required: number
}

/** What a pod's own reservation has taken: it does not stand in its own way. */
export interface OwnReservation {
  readonly lagAvailable: number
  readonly lagOthers: number
  readonly remaining: number
  /** As which it was taken in this batch. */
  readonly taken: QuotaPod | undefined
}

const NOTHING: OwnReservation = { lagAvailable: 0, lagOthers: 0, remaining: 0, taken: undefined }

export function quotaState(protector: PodProtector, limits: HistoryLimits, nowMicros: number): QuotaState {
  return quotaOfCells(protector, readCells(protector.status?.cells, nowMicros).values(), limits, nowMicros)
}

export function quotaOfCells(
  protector: PodProtector,
  cells: Iterable<CellHistory>,
  limits: HistoryLimits,
  nowMicros: number,
): QuotaState {
  const sums = { available: 0, ready: 0, running: 0, scheduled: 0, lagAvailable: 0, lagOthers: 0 }
  for (const cell of cells) {
    if (isStale(cell, limits, nowMicros)) continue
    sums.available += cell.aggregation?.available ?? 0
    sums.ready += cell.aggregation?.ready ?? 0
    sums.running += cell.aggregation?.running ?? 0
    sums.scheduled += cell.aggregation?.scheduled ?? 0
    for (const entry of cell.entries) {
      sums.lagAvailable += entry.counter
      sums.lagOthers += deletionsOf(entry)
    }
  }
  const { maxConcurrentLag: max } = limits
  return { ...sums, reject: requiredBy(protector), remaining: max > 0 ? max - sums.lagOthers : undefined }
}

export function passes(result: QuotaResult): boolean {
  return result === 'Ok' || result === 'AlreadyUnhealthy'
}

/** The quota while a batch is evaluated one by one. */
export class QuotaTally {
  readonly #state: QuotaState
  readonly #taken: Record<Lowercase<HealthCriterion>, number> = { available: 0, ready: 0, running: 0, scheduled: 0 }
  #deletions = 0
  #raised = 0

  constructor(state: QuotaState) {
    this.#state = state
  }

  evaluate(pod: QuotaPod, own: OwnReservation = NOTHING): QuotaEvaluation {
    const criterion = countOfCriterion(pod.criterion)
    const { reject: required, remaining } = this.#state
    const count = this.#state[criterion]
    const lag =
      criterion === 'available'
        ? this.#state.lagAvailable + this.#raised - own.lagAvailable
        : this.#state.lagOthers - own.lagOthers
    // What this batch has taken is certain to go: it is not worth waiting for, and makes no Retry of a Denied.
    const taken = this.#taken[criterion] - (own.taken?.[criterion] === true ? 1 : 0)
    const numbers = { count, lag: lag + taken, required }
    if (remaining !== undefined && remaining - this.#deletions + own.remaining <= 0)
      return { result: 'Retry', ...numbers }
    if (criterion === 'available' && pod.young === true) {
      if (count - taken >= required + lag) return { result: 'AlreadyUnhealthy', ...numbers }
      return { result: count - taken < required ? 'Denied' : 'Retry', ...numbers }
    }
    if (!pod[criterion]) return { result: 'AlreadyUnhealthy', ...numbers }
    if (count - taken <= required) return { result: 'Denied', ...numbers }
    if (count - taken <= required + lag) return { result: 'Retry', ...numbers }
    return { result: 'Ok', ...numbers }
  }

  /** The pod will be deleted. */
  take(pod: QuotaPod): void {
    for (const criterion of ['available', 'ready', 'running', 'scheduled'] as const) {
      if (pod[criterion]) this.#taken[criterion] += 1
    }
    this.#deletions += 1
  }

  /** A pod whose deletion took nothing so far has turned out to be available. */
  raise(): void {
    this.#raised += 1
  }
}

function countOfCriterion(criterion: HealthCriterion): Lowercase<HealthCriterion> {
  switch (criterion) {
    case 'Available':
      return 'available'
    case 'Ready':
      return 'ready'
    case 'Running':
      return 'running'
    case 'Scheduled':
      return 'scheduled'
  }
}

/** Who does not say how many have to stay loses none. */
function requiredBy(protector: PodProtector): number {
  const required: unknown = protector.spec?.minAvailable
  return typeof required === 'number' && !Number.isNaN(required) ? Math.max(0, required) : MAX_COUNT
}
