// Verdicts on deletions. First all protectors of a pod are evaluated on cached state; if one of them refuses, nothing is written.
// Otherwise the deletion is reserved in all of them, or in none.

import type { CellClocks } from '../../../gateway/core/clocks/cell-clock.ts'
import type { Clock } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { ProtectionSettings } from '../../../process/api/protection-settings.ts'
import type { ProtectionRequest, ProtectionVerdict, Reservation, ReservationHold } from '../../api/protection.ts'
import type { BatchAnswer, BatchRequest } from '../../core/batch/request.ts'
import { limitsOf } from '../../core/history/cell-history.ts'
import type { KnownQuotas, RecordOperation, ReserveOperation } from '../../core/ledger/history.ts'
import {
  admitted,
  type Finding,
  failedVerdict,
  overrideOf,
  refuses,
  reservationOf,
  verdictOf,
} from '../../core/ledger/verdicts.ts'
import { asksNoQuota, evaluateDeletion, freePass, type QuotaPod } from '../../core/quota/quota.ts'
import type { LiveProtector, ProtectorTable, RestoredProtectors } from '../../state/protectors.ts'
import type { LedgerOperation, LedgerResult } from './writes.ts'

export type LedgerAnswer = BatchAnswer<LedgerResult>

interface LedgerReviewDeps {
  readonly protectors: ProtectorTable
  /** Saved state, used until the protectors are known. Default: none. */
  readonly restored?: RestoredProtectors | undefined
  readonly quotas: KnownQuotas
  readonly settings: ProtectionSettings
  readonly clock: Clock
  readonly clocks: CellClocks
  /** All requests go into the protector's next write. */
  submit(key: string, requests: readonly BatchRequest<LedgerOperation>[]): readonly Promise<LedgerAnswer>[]
  /** Releases reservations. */
  release(cell: string, uid: string, holds: readonly ReservationHold[]): void
}

export interface Reviewed {
  readonly verdict: ProtectionVerdict
  /** Keys of all protectors that select the pod, sorted. */
  readonly protectors: readonly string[]
}

/** A deletion that is being reviewed. */
interface Review {
  readonly request: ProtectionRequest
  /** One per protector of the pod. */
  readonly evaluations: readonly LedgerEvaluation[]
  /** Reached without a write; undefined = not yet. */
  verdict: ProtectionVerdict | undefined
}

/** One protector's evaluation of the deletion. */
interface LedgerEvaluation {
  readonly live: LiveProtector
  readonly protector: LiveProtector['protector']
  /** undefined = the deletion is only recorded. */
  readonly pod: QuotaPod | undefined
  /** Monotonic ms: the earliest time at which the pod may become available, if it isn't now. */
  readonly availableFromMs: number
  /** From cached state, without a write. */
  finding: Finding
  answer: Promise<LedgerAnswer> | undefined
}

/** How long a record waits for a batch that is written anyway. */
const RECORD_WAIT_MS = 500
/** After this time the record is useless. */
const RECORD_TIMEOUT_MS = 30_000
const UNKNOWN = 'the PodProtectors have not been read yet'
const AWAY = 'the core cluster has not answered since this gateway was started'

/** One result per request, in order. */
export async function reviewAll(
  deps: LedgerReviewDeps,
  requests: readonly ProtectionRequest[],
): Promise<readonly Reviewed[]> {
  const reviews = requests.map((request) => begin(deps, request))
  evaluate(deps, reviews)
  for (const review of reviews) review.verdict ??= verdictByWhatIsKnown(review)
  submit(deps, reviews)
  return Promise.all(
    reviews.map(async (review) => ({
      verdict: review.verdict ?? (await finish(deps, review)),
      protectors: review.evaluations.map(({ live }) => live.key),
    })),
  )
}

function begin(
  { protectors, restored, settings, clock, clocks }: LedgerReviewDeps,
  request: ProtectionRequest,
): Review {
  const { pod } = request
  const pass = freePass(request)
  if (pass === 'AlreadyTerminating') return { request, evaluations: [], verdict: admitted(pass) }
  if (pass === undefined && !protectors.synced)
    return { request, evaluations: [], verdict: byRestored(request, restored) }
  const monotonicMs = clock.monotonic()
  const time = clocks.at(request.cell, monotonicMs)
  const evaluations = protectors.matching(pod.namespace, pod.labels).map((live): LedgerEvaluation => {
    const { protector, key } = live
    const found =
      pass === undefined
        ? evaluateDeletion(request, protector.spec.minReadySeconds, time, settings.reservationTimeoutMs)
        : ({ type: 'record' } as const)
    const finding: Finding = { ...NO_NUMBERS, protector: key, result: 'Recorded' }
    const evaluation = { live, protector, finding, answer: undefined }
    if (found.type === 'record') return { ...evaluation, pod: undefined, availableFromMs: 0 }
    return { ...evaluation, pod: found.pod, availableFromMs: monotonicMs + found.availableInMs }
  })
  const verdict =
    evaluations.length === 0 ? { ...admitted(pass ?? 'Unmatched'), freePass: !protectors.synced } : undefined
  return { request, evaluations, verdict }
}

/** A saved state only tells whether a pod has a protector: nothing passes because it was available then. */
function byRestored(request: ProtectionRequest, restored: RestoredProtectors | undefined): ProtectionVerdict {
  if (restored === undefined) return failedVerdict(request, UNKNOWN)
  const [protector] = restored.matching(request.pod.namespace, request.pod.labels)
  return protector === undefined ? admitted('Unmatched') : failedVerdict(request, AWAY, protector)
}

const NO_NUMBERS = { count: 0, lag: 0, required: 0, maxConcurrentLag: 0 }

/** Evaluates all deletions of one protector together, on cached state. */
function evaluate({ quotas, settings, clock }: LedgerReviewDeps, reviews: readonly Review[]): void {
  const nowMicros = clock.now() * 1000
  for (const [key, group] of byProtector(reviews)) {
    const { protector } = group[0].evaluation
    const limits = limitsOf(protector, settings)
    const reserving = group.flatMap(({ request, evaluation }) => {
      const { pod } = evaluation
      return pod === undefined ? [] : [{ evaluation, operation: reserveOf(request, pod) }]
    })
    const operations = reserving.map(({ operation }) => operation)
    const results = quotas.evaluate(protector, operations, limits, nowMicros)
    for (const [index, { evaluation }] of reserving.entries()) {
      const numbers = results[index]
      if (numbers === undefined || numbers.result === 'Done') continue
      const { result, count, lag, required } = numbers
      const { maxConcurrentLag } = limits
      evaluation.finding = {
        protector: key,
        result: resultOf(evaluation, result),
        count,
        lag,
        required,
        maxConcurrentLag,
      }
    }
  }
}

/** undefined = the deletion has to be written first. */
function verdictByWhatIsKnown(review: Review): ProtectionVerdict | undefined {
  const findings = review.evaluations.map(({ finding }) => finding)
  const refused = findings.some(refuses) && overrideOf(review.request) === ''
  return refused || review.request.dryRun ? conclude(review, findings, undefined) : undefined
}

function conclude(
  { request, evaluations }: Review,
  findings: readonly Finding[],
  reservation: Reservation | undefined,
): ProtectionVerdict {
  const pass = freePass(request)
  const verdict = pass === undefined ? verdictOf(request, findings, reservation) : admitted(pass)
  // Decided by the pod, not by the findings: a deletion recorded before hides why it passes.
  return {
    ...verdict,
    freePass: verdict.admitted && evaluations.some(({ pod }) => pod === undefined || asksNoQuota(pod)),
  }
}

function submit({ clock, ...deps }: LedgerReviewDeps, reviews: readonly Review[]): void {
  const nowMs = clock.monotonic()
  for (const [key, group] of byProtector(reviews)) {
    const requests = group.map(({ request, evaluation }): BatchRequest<LedgerOperation> => {
      const { pod, protector, availableFromMs } = evaluation
      const matchedBy = { protector, labels: request.pod.labels }
      if (pod !== undefined) {
        const operation = { history: reserveOf(request, pod), matchedBy, availableFromMs }
        return { operation, deadlineMs: nowMs + request.timeoutMs }
      }
      const operation = { history: recordOf(request), matchedBy }
      return { operation, deadlineMs: nowMs + RECORD_TIMEOUT_MS, waitMs: RECORD_WAIT_MS, persistent: true }
    })
    const answers = deps.submit(key, requests)
    for (const [index, { evaluation }] of group.entries()) {
      if (evaluation.pod !== undefined) evaluation.answer = answers[index]
    }
  }
}

/** Waits for the writes. Unless all protectors admit the deletion, its reservations are released. */
async function finish(deps: LedgerReviewDeps, review: Review): Promise<ProtectionVerdict> {
  const { request } = review
  const findings: Finding[] = []
  const holds: ReservationHold[] = []
  let failure: ProtectionVerdict | undefined
  for (const evaluation of review.evaluations) {
    const { answer, finding, live } = evaluation
    const given = await answer
    if (given === undefined) findings.push(finding)
    else if (given.type === 'done') {
      const { startTime, protectorUid, result, ...numbers } = given.result
      findings.push({
        ...numbers,
        protector: live.key,
        result: result === 'Done' ? 'Ok' : resultOf(evaluation, result),
      })
      const { namespace = '', name } = live.protector.metadata
      if (startTime !== '') holds.push({ namespace, name, uid: protectorUid, startTime })
    } else failure ??= failedVerdict(request, whyNot(given, live.key, request.timeoutMs), live.key)
  }
  const passes = overrideOf(request) !== '' || (failure === undefined && !findings.some(refuses))
  if (!passes && holds.length > 0) deps.release(request.cell, request.pod.uid, holds)
  const reservation = passes ? reservationOf(request, holds) : undefined
  return failure === undefined ? conclude(review, findings, reservation) : { ...failure, reservation }
}

/** A pod too young to count has not failed its criterion: it passes like one whose deletion is only recorded. */
function resultOf({ pod }: LedgerEvaluation, result: Finding['result']): Finding['result'] {
  return result === 'AlreadyUnhealthy' && pod?.young === true ? 'Recorded' : result
}

function whyNot(answer: Exclude<LedgerAnswer, { type: 'done' }>, protector: string, timeoutMs: number): string {
  switch (answer.type) {
    case 'expired':
      return `PodProtector ${protector} could not be written within ${timeoutMs / 1000} s`
    case 'stopped':
      return 'the gateway is shutting down'
    case 'failed': {
      const reason = errorMessage(answer.error)
      return `PodProtector ${protector} cannot be written: ${reason}`
    }
  }
}

function reserveOf(request: ProtectionRequest, pod: QuotaPod): ReserveOperation {
  const { uid, name, resourceVersion } = request.pod
  return { type: 'reserve', cell: request.cell, uid, name, resourceVersion, pod, force: overrideOf(request) !== '' }
}

function recordOf({ cell, pod: { uid, name, resourceVersion } }: ProtectionRequest): RecordOperation {
  return { type: 'record', cell, uid, name, resourceVersion }
}

interface EvaluatedRequest {
  readonly request: ProtectionRequest
  readonly evaluation: LedgerEvaluation
}

type Group = [EvaluatedRequest, ...EvaluatedRequest[]]

/** The deletions without a verdict, grouped by protector key, in order. */
function byProtector(reviews: readonly Review[]): ReadonlyMap<string, Readonly<Group>> {
  const groups = new Map<string, Group>()
  for (const { request, evaluations, verdict } of reviews) {
    if (verdict !== undefined) continue
    for (const evaluation of evaluations) {
      const group = groups.get(evaluation.live.key)
      if (group === undefined) groups.set(evaluation.live.key, [{ request, evaluation }])
      else group.push({ request, evaluation })
    }
  }
  return groups
}
