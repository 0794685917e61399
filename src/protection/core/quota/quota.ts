// Whether a deletion would leave too few pods (Podseidon's webhook/handler/disruptionquota). A quota counts available, ready, running or
// scheduled pods, depending on the pod's health criterion.

import type { PodProtector } from '../../api/pod-protector.ts'
import type { HealthCriterion } from '../../api/protection.ts'
import { type CellHistory, isStale, readCells } from '../history/cell-history.ts'
import { deletionsOf, MAX_COUNT } from '../history/entry.ts'
import type { HistoryLimits } from '../history/limits.ts'

export type QuotaResult =
  | 'Ok'
  /** The pod does not meet its own criterion: no counted pod is lost. */
  | 'AlreadyUnhealthy'
  /** Too few would be left. */
  | 'Denied'
  /** May pass once it is known which of the earlier admitted deletions have happened. */
  | 'Retry'

export interface QuotaState {
  /** Counted pods of all cells that are not stale. */
  readonly available: number
  readonly ready: number
  readonly running: number
  readonly scheduled: number
  /** How many fewer will be available because of admitted deletions not yet counted. */
  readonly lagAvailable: number
  /** Number of such deletions: what they take from the other counts is unknown. */
  readonly lagOthers: number
  /** With this many pods or fewer, no pod may be deleted. */
  readonly reject: number
  /** Deletions that may be admitted before the aggregators catch up; undefined = unlimited. */
  readonly remaining: number | undefined
}

/** A pod under evaluation. */
export interface QuotaPod {
  readonly criterion: HealthCriterion
  readonly scheduled: boolean
  readonly running: boolean
  readonly ready: boolean
  readonly available: boolean
  /**
   * Not available, but time alone may make it available before it is deleted. It is in no count: it may be deleted while enough pods are
   * left without it. Default false.
   */
  readonly young?: boolean
}

interface QuotaEvaluation {
  readonly result: QuotaResult
  /** For messages: counted pods, deducted deletions, and how many pods must stay. */
  readonly count: number
  readonly lag: number
  readonly required: number
}

/** What a pod's own reservation has taken: it does not count against the pod itself. */
export interface OwnReservation {
  readonly lagAvailable: number
  readonly lagOthers: number
  readonly remaining: number
  /** The pod as it was counted in this batch. */
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

/** The quota during the sequential evaluation of a batch. */
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
    // Deletions of this batch are certain to happen: waiting for them would not help, so they never turn Denied into Retry.
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

  /** A pod whose deletion so far took no available pod turned out to be available. */
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

/** Without minAvailable no pod may be deleted. */
function requiredBy(protector: PodProtector): number {
  const required: unknown = protector.spec?.minAvailable
  return typeof required === 'number' && !Number.isNaN(required) ? Math.max(0, required) : MAX_COUNT
}
