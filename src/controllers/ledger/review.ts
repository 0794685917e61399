// Verdicts on deletions: all protectors of a pod are asked by what is known first, and nothing is written when one of them
// refuses; then the deletion is reserved in all of them at once, or in none.

import type { Clock } from '../../api/ports/ports.ts'
import type { ProtectionRequest, ProtectionVerdict, Reservation, ReservationHold } from '../../api/ports/protection.ts'
import type { BatchAnswer, BatchRequest } from '../../core/protection/batch/request.ts'
import type { CellClocks } from '../../core/protection/clocks/cell-clock.ts'
import { limitsOf } from '../../core/protection/history/limits.ts'
import type { NoteOperation, ReserveOperation } from '../../core/protection/ledger/history.ts'
import type { KnownQuotas } from '../../core/protection/ledger/known-quota.ts'
import {
  admitted,
  type Finding,
  failed,
  overrideOf,
  refuses,
  reservationOf,
  verdictOf,
} from '../../core/protection/ledger/verdicts.ts'
import { asksNoQuota, freePass, judge } from '../../core/protection/quota/judge.ts'
import type { QuotaPod } from '../../core/protection/quota/quota.ts'
import type { ProtectionSettings } from '../../core/protection/requests/protection-settings.ts'
import type { LiveProtector, ProtectorTable } from '../../state/protectors.ts'
import type { LedgerOperation, LedgerResult } from './writes.ts'

export type LedgerAnswer = BatchAnswer<LedgerResult>

export interface LedgerReviewParts {
  readonly protectors: ProtectorTable
  readonly quotas: KnownQuotas
  readonly settings: ProtectionSettings
  readonly clock: Clock
  readonly clocks: CellClocks
  /** All go into the next write of the protector. */
  submit(key: string, requests: readonly BatchRequest<LedgerOperation>[]): readonly Promise<LedgerAnswer>[]
  /** Takes back what was reserved. */
  release(cell: string, uid: string, holds: readonly ReservationHold[]): void
}

export interface Reviewed {
  readonly verdict: ProtectionVerdict
  /** Keys of all that select the pod, sorted. */
  readonly protectors: readonly string[]
}

/** A deletion on its way to a verdict. */
interface Case {
  readonly request: ProtectionRequest
  readonly parts: readonly Part[]
  /** Settled without a write. */
  verdict: ProtectionVerdict | undefined
}

/** One protector's part in it. */
interface Part {
  readonly live: LiveProtector
  readonly protector: LiveProtector['protector']
  /** undefined = it is only noted. */
  readonly pod: QuotaPod | undefined
  /** Monotonic: from when on it may be available, where `pod` is not. */
  readonly availableFromMs: number
  /** By what is known. */
  finding: Finding
  answer: Promise<LedgerAnswer> | undefined
}

/** A note waits so long for a batch that is written anyway. */
const NOTE_WAIT_MS = 500
/** Then nobody needs the note any more. */
const NOTE_TIMEOUT_MS = 30_000
const UNKNOWN = 'the PodProtectors are not known yet'

/** One result for each request, in their order. */
export async function reviewAll(
  parts: LedgerReviewParts,
  requests: readonly ProtectionRequest[],
): Promise<readonly Reviewed[]> {
  const cases = requests.map((request) => open(parts, request))
  evaluate(parts, cases)
  for (const one of cases) one.verdict ??= byWhatIsKnown(one)
  submit(parts, cases)
  return Promise.all(
    cases.map(async (one) => ({
      verdict: one.verdict ?? (await close(parts, one)),
      protectors: one.parts.map(({ live }) => live.key),
    })),
  )
}

function open({ protectors, settings, clock, clocks }: LedgerReviewParts, request: ProtectionRequest): Case {
  const { pod } = request
  const pass = freePass(request)
  if (pass === 'AlreadyTerminating') return { request, parts: [], verdict: admitted(pass) }
  if (pass === undefined && !protectors.synced) return { request, parts: [], verdict: failed(request, UNKNOWN) }
  const monotonicMs = clock.monotonic()
  const time = clocks.at(request.cell, monotonicMs)
  const parts = protectors.matching(pod.namespace, pod.labels).map((live): Part => {
    const { protector, key } = live
    const judgement =
      pass === undefined
        ? judge(request, protector.spec.minReadySeconds, time, settings.reservationTimeoutMs)
        : ({ type: 'note' } as const)
    const finding: Finding = { ...NO_NUMBERS, protector: key, result: 'Noted' }
    const part = { live, protector, finding, answer: undefined }
    if (judgement.type === 'note') return { ...part, pod: undefined, availableFromMs: 0 }
    return { ...part, pod: judgement.pod, availableFromMs: monotonicMs + judgement.availableInMs }
  })
  const settled = parts.length === 0 ? { ...admitted(pass ?? 'Unmatched'), freePass: !protectors.synced } : undefined
  return { request, parts, verdict: settled }
}

const NO_NUMBERS = { count: 0, lag: 0, required: 0, maxConcurrentLag: 0 }

/** All deletions of one protector together, by what is known of it. */
function evaluate({ quotas, settings, clock }: LedgerReviewParts, cases: readonly Case[]): void {
  const nowMicros = clock.now() * 1000
  for (const [key, group] of byProtector(cases)) {
    const { protector } = group[0].part
    const limits = limitsOf(protector, settings)
    const reserving = group.flatMap(({ request, part }) => {
      return part.pod === undefined ? [] : [{ part, operation: reserveOf(request, part.pod) }]
    })
    const operations = reserving.map(({ operation }) => operation)
    const results = quotas.evaluate(protector, operations, limits, nowMicros)
    for (const [index, { part }] of reserving.entries()) {
      const numbers = results[index]
      if (numbers === undefined || numbers.result === 'Done') continue
      const { result, count, lag, required } = numbers
      const { maxConcurrentLag } = limits
      part.finding = { protector: key, result: foundOf(part, result), count, lag, required, maxConcurrentLag }
    }
  }
}

/** undefined = it has to be written first. */
function byWhatIsKnown(one: Case): ProtectionVerdict | undefined {
  const findings = one.parts.map(({ finding }) => finding)
  const refused = findings.some(refuses) && overrideOf(one.request) === ''
  return refused || one.request.dryRun ? conclude(one, findings, undefined) : undefined
}

function conclude(
  { request, parts }: Case,
  findings: readonly Finding[],
  reservation: Reservation | undefined,
): ProtectionVerdict {
  const pass = freePass(request)
  const verdict = pass === undefined ? verdictOf(request, findings, reservation) : admitted(pass)
  // By the pod and not by the findings: what was recorded before hides why.
  return { ...verdict, freePass: verdict.admitted && parts.some(({ pod }) => pod === undefined || asksNoQuota(pod)) }
}

function submit({ settings, clock, ...parts }: LedgerReviewParts, cases: readonly Case[]): void {
  const nowMs = clock.monotonic()
  const open = cases.filter(({ verdict }) => verdict === undefined)
  for (const [key, group] of byProtector(open)) {
    const requests = group.map(({ request, part }): BatchRequest<LedgerOperation> => {
      const { pod, protector, availableFromMs } = part
      const judged = { protector, labels: request.pod.labels }
      if (pod !== undefined) {
        const operation = { history: reserveOf(request, pod), judged, availableFromMs }
        return { operation, deadlineMs: nowMs + request.timeoutMs }
      }
      const operation = { history: noteOf(request), judged }
      return { operation, deadlineMs: nowMs + NOTE_TIMEOUT_MS, waitMs: NOTE_WAIT_MS, persistent: true }
    })
    const answers = parts.submit(key, requests)
    for (const [index, { part }] of group.entries()) if (part.pod !== undefined) part.answer = answers[index]
  }
}

/** All protectors have said yes, or what was reserved for it in any is free again. */
async function close(parts: LedgerReviewParts, one: Case): Promise<ProtectionVerdict> {
  const { request } = one
  const findings: Finding[] = []
  const holds: ReservationHold[] = []
  let failure: ProtectionVerdict | undefined
  for (const part of one.parts) {
    const { answer, finding, live } = part
    const given = await answer
    if (given === undefined) findings.push(finding)
    else if (given.type === 'done') {
      const { startTime, protectorUid, result, ...numbers } = given.result
      findings.push({ ...numbers, protector: live.key, result: result === 'Done' ? 'Ok' : foundOf(part, result) })
      const { namespace = '', name } = live.protector.metadata
      if (startTime !== '') holds.push({ namespace, name, uid: protectorUid, startTime })
    } else failure ??= failed(request, whyNot(given, live.key, request.timeoutMs), live.key)
  }
  const passes = overrideOf(request) !== '' || (failure === undefined && !findings.some(refuses))
  if (!passes && holds.length > 0) parts.release(request.cell, request.pod.uid, holds)
  const reservation = passes ? reservationOf(request, holds) : undefined
  return failure === undefined ? conclude(one, findings, reservation) : { ...failure, reservation }
}

/** One that is too young to count has not failed its criterion: it is let through like one that is only noted. */
function foundOf({ pod }: Part, result: Finding['result']): Finding['result'] {
  return result === 'AlreadyUnhealthy' && pod?.young === true ? 'Noted' : result
}

function whyNot(answer: Exclude<LedgerAnswer, { type: 'done' }>, protector: string, timeoutMs: number): string {
  switch (answer.type) {
    case 'expired':
      return `PodProtector ${protector} could not be written within ${timeoutMs / 1000} s`
    case 'stopped':
      return 'the gateway is shutting down'
    case 'failed': {
      const reason = answer.error instanceof Error ? answer.error.message : String(answer.error)
      return `PodProtector ${protector} cannot be written: ${reason}`
    }
  }
}

function reserveOf(request: ProtectionRequest, pod: QuotaPod): ReserveOperation {
  const { uid, name, resourceVersion } = request.pod
  return { type: 'reserve', cell: request.cell, uid, name, resourceVersion, pod, force: overrideOf(request) !== '' }
}

function noteOf({ cell, pod: { uid, name, resourceVersion } }: ProtectionRequest): NoteOperation {
  return { type: 'note', cell, uid, name, resourceVersion }
}

interface Member {
  readonly request: ProtectionRequest
  readonly part: Part
}

/** What each protector has to do with them, in their order. */
function byProtector(cases: readonly Case[]): ReadonlyMap<string, readonly [Member, ...Member[]]> {
  const groups = new Map<string, [Member, ...Member[]]>()
  for (const { request, parts, verdict } of cases) {
    if (verdict !== undefined) continue
    for (const part of parts) {
      const group = groups.get(part.live.key)
      if (group === undefined) groups.set(part.live.key, [{ request, part }])
      else group.push({ request, part })
    }
  }
  return groups
}
