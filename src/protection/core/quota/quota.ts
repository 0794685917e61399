// Whether a deletion would leave too few pods: first by the pod alone, in Podseidon's order (webhook/handler/handler.go), without its ways around
// the health criterion; then by a protector's quota (disruptionquota), which counts available, ready, running or scheduled pods, as that says.

import type { CellTime } from '../../../gateway/core/clocks/cell-clock.ts'
import type { PodProtector } from '../../api/pod-protector.ts'
import type { HealthCriterion, ProtectionRequest } from '../../api/protection.ts'
import { type CellHistory, type HistoryLimits, isStale, readCells } from '../history/cell-history.ts'
import { deletionsOf, MAX_COUNT } from '../history/entry.ts'
import { readyAtMostMs } from './ready-time.ts'

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

/** Deletions that no protector can refuse. */
type FreePass =
  /** It is already being deleted; nothing is written. */
  | 'AlreadyTerminating'
  /** It is not ready: no available pod is lost, but it must not be counted on to become ready; recorded. */
  | 'AlreadyUnready'

type DeletionEvaluation =
  /** It will not become available before it is deleted: admitted and recorded. */
  | { readonly type: 'record' }
  | {
      readonly type: 'reserve'
      readonly pod: QuotaPod
      /** Milliseconds until it may become available; 0 = it is available, or time alone will not make it so. */
      readonly availableInMs: number
    }

/** The criterion of an Eviction outranks the pod's. */
export function criterionOf({ criterion, pod }: Pick<ProtectionRequest, 'criterion' | 'pod'>): HealthCriterion {
  return criterion ?? pod.criterion
}

/** Decided without any protector. */
export function freePass(request: Pick<ProtectionRequest, 'criterion' | 'pod'>): FreePass | undefined {
  const { pod } = request
  if (pod.terminating) return 'AlreadyTerminating'
  return !pod.ready && criterionOf(request) === 'Available' ? 'AlreadyUnready' : undefined
}

/**
 * For one protector, and a pod without a free pass. A pod counts as available unless it certainly is not.
 * @param time of the cell's API servers; undefined = unknown
 * @param withinMs maximum time from now until upstream has deleted it, or never will
 */
export function evaluateDeletion(
  request: Pick<ProtectionRequest, 'criterion' | 'pod'>,
  minReadySeconds: number,
  time: CellTime | undefined,
  withinMs: number,
): DeletionEvaluation {
  const { pod } = request
  const { scheduled, running, ready } = pod
  const criterion = criterionOf(request)
  const lackMs = minReadySeconds > 0 ? minReadySeconds * 1000 - readyAtMostMs(pod, time) : 0
  const available = ready && lackMs <= 0
  // It is ready, and will become available with time alone.
  const young = ready && !available
  if (criterion === 'Available' && (!ready || (young && lackMs > withinMs))) return { type: 'record' }
  const evaluated = { criterion, scheduled, running, ready, available, ...(young && { young }) }
  return { type: 'reserve', pod: evaluated, availableInMs: young ? lackMs : 0 }
}

/** The pod does not meet its own criterion: its deletion passes, but only if the pod is still as it was read. */
export function asksNoQuota(pod: QuotaPod): boolean {
  return !(pod[COUNTS[pod.criterion]] || (pod.criterion === 'Available' && pod.young === true))
}

const COUNTS = { Available: 'available', Ready: 'ready', Running: 'running', Scheduled: 'scheduled' } as const
