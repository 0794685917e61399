// A guard's memory of its groups, stored in its status: a restart, or another leader, continues from there.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, listOf, recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'
import type { FailedMachine, GroupRequest, GuardedGroup } from '../../api/scale-up-guard.ts'
import type { BackoffEntry, ScaleUpRequest } from '../cluster-state.ts'
import type { GroupBackoff } from './check-raise.ts'
import type { GroupEvaluation, GroupMemory } from './evaluate-group.ts'

/** The cause of a backoff. */
export interface BackoffCause {
  readonly attempt: number
  readonly failed: number
  readonly machines: number
  readonly reason: string
}

export interface RememberedGroup {
  readonly memory: GroupMemory
  readonly backoff: BackoffEntry<BackoffCause> | undefined
  readonly request: (ScaleUpRequest & { readonly by: string }) | undefined
  readonly lastAction: string
  readonly lastActionMs: number
}

export interface GroupReport extends RememberedGroup {
  readonly name: string
  readonly evaluation: Pick<GroupEvaluation, 'failures' | 'inaction'>
  readonly shadow: boolean
  readonly healthCheck: string
}

/** Per group. More would make the object too large if very many fail: those beyond count as new after a restart. */
const MAX_FAILED = 50
const MAX_MESSAGE = 160
const MAX_MISSING = 200
/** Per guard status: an object that etcd rejects (1.5 MiB) would stop the guard entirely. */
export const MAX_GROUPS_IN_STATUS = 500
const MAX_FAILED_IN_ALL = 1_000
const MAX_MISSING_IN_ALL = 5_000

/** Number of entries listed per group. */
interface Shares {
  readonly failed: number
  readonly missing: number
}

function groupStatus(report: GroupReport, shares: Shares): GuardedGroup {
  const { name, memory, evaluation, backoff, request, lastAction, lastActionMs, healthCheck, shadow } = report
  const { failures, inaction } = evaluation
  const neverActed = inaction === 'none-failed' ? '' : (inaction ?? (shadow ? 'shadow' : ''))
  return {
    name,
    target: memory.replicas,
    ...(request !== undefined && { requests: [requestStatus(request)] }),
    ...(failures.length > 0 && {
      failedCount: failures.length,
      failed: failures.slice(0, shares.failed).map(failedStatus),
    }),
    ...(backoff !== undefined && backoffStatus(backoff)),
    ...(lastAction !== '' && { lastAction: printable(lastAction), lastActionTime: metaTime(lastActionMs) }),
    ...(neverActed !== '' && { neverActed }),
    ...(healthCheck !== '' && { machineHealthCheck: healthCheck }),
    ...(memory.missingSinceMs.length > 0 && {
      missingSince: memory.missingSinceMs.slice(0, shares.missing).map(metaTime),
    }),
  }
}

/** Failed groups and those in backoff first: they must not be lost. */
export function statusGroups(reports: readonly GroupReport[]): readonly GuardedGroup[] {
  const weight = ({ backoff, evaluation }: GroupReport): number =>
    (backoff === undefined ? 0 : 2) + (evaluation.failures.length > 0 ? 1 : 0)
  const sorted = [...reports].sort((a, b) => weight(b) - weight(a) || (a.name < b.name ? -1 : 1))
  const told = sorted.slice(0, MAX_GROUPS_IN_STATUS)
  const failing = told.filter(({ evaluation }) => evaluation.failures.length > 0).length
  const missing = told.filter(({ memory }) => memory.missingSinceMs.length > 0).length
  const shares: Shares = {
    failed: Math.min(MAX_FAILED, Math.floor(MAX_FAILED_IN_ALL / Math.max(1, failing))),
    missing: Math.min(MAX_MISSING, Math.floor(MAX_MISSING_IN_ALL / Math.max(1, missing))),
  }
  return told.map((report) => groupStatus(report, shares))
}

/** Shortens text written by others, and strips what a terminal would interpret. */
function printable(text: string): string {
  return text.slice(0, MAX_MESSAGE).replaceAll(/\p{Cc}/gu, ' ')
}

/** By name. Accepts any JSON. */
export function rememberedGroups(object: JsonObject): ReadonlyMap<string, RememberedGroup> {
  return new Map(groupsIn(object).map((group) => [textOf(group['name']), remembered(group)]))
}

/** Backoffs that have not ended. */
export function backoffsIn(object: JsonObject, nowMs: number): readonly GroupBackoff[] {
  return groupsIn(object).flatMap((group): GroupBackoff[] => {
    const backoff = backoffIn(group)
    if (backoff === undefined || backoff.untilMs < nowMs) return []
    const { attempt, failed, machines, reason } = backoff.error
    return [{ group: textOf(group['name']), untilMs: backoff.untilMs, attempt, failed, machines, reason }]
  })
}

function groupsIn(object: JsonObject): readonly JsonObject[] {
  return recordsOf(recordOf(object['status'])['groups'])
}

function remembered(group: JsonObject): RememberedGroup {
  // A MachinePool replica has no uid: the group's name stands for all of them.
  const uids = recordsOf(group['failed']).map((one) => textOf(one['uid']) || textOf(group['name']))
  return {
    memory: {
      replicas: numberOf(group['target']),
      failed: new Set(uids),
      missingSinceMs: listOf(group['missingSince'])
        .map((time) => Date.parse(textOf(time)))
        .filter((ms) => !Number.isNaN(ms)),
    },
    backoff: backoffIn(group),
    request: requestIn(group['requests']),
    lastAction: textOf(group['lastAction']),
    lastActionMs: Date.parse(textOf(group['lastActionTime'])) || 0,
  }
}

function backoffIn(group: JsonObject): BackoffEntry<BackoffCause> | undefined {
  const untilMs = Date.parse(textOf(group['backoffUntil']))
  const lastFailureMs = Date.parse(textOf(group['lastFailureTime']))
  if (Number.isNaN(untilMs) || Number.isNaN(lastFailureMs)) return undefined
  return {
    untilMs,
    lastFailureMs,
    durationMs: numberOf(group['backoffSeconds']) * 1000,
    error: {
      attempt: numberOf(group['attempt']),
      failed: numberOf(group['backoffFailedCount']),
      machines: numberOf(group['machineCount']),
      reason: textOf(group['backoffReason']),
    },
  }
}

function backoffStatus({
  untilMs,
  lastFailureMs,
  durationMs,
  error,
}: BackoffEntry<BackoffCause>): Partial<GuardedGroup> {
  const { attempt, failed, machines, reason } = error
  return {
    // Rounded up: the enforced backoff must not end before the decided one.
    backoffUntil: metaTime(Math.ceil(untilMs / 1000) * 1000),
    backoffSeconds: Math.round(durationMs / 1000),
    backoffReason: reason,
    backoffFailedCount: failed,
    machineCount: machines,
    attempt,
    lastFailureTime: metaTime(lastFailureMs),
  }
}

function requestStatus({
  increase,
  timeMs,
  expectedAddMs,
  by,
}: ScaleUpRequest & { readonly by: string }): GroupRequest {
  return { increase, at: metaTime(timeMs), expectedAdd: metaTime(expectedAddMs), ...(by !== '' && { by }) }
}

function requestIn(requests: unknown): RememberedGroup['request'] {
  const [first] = listOf(requests)
  if (!isRecord(first)) return undefined
  const [timeMs, expectedAddMs] = [Date.parse(textOf(first['at'])), Date.parse(textOf(first['expectedAdd']))]
  if (Number.isNaN(timeMs) || Number.isNaN(expectedAddMs)) return undefined
  return { increase: numberOf(first['increase']), timeMs, expectedAddMs, by: textOf(first['by']) }
}

function failedStatus({ machine, reason, message }: GroupEvaluation['failures'][number]): FailedMachine {
  return {
    ...(machine !== undefined && { machine: machine.name, uid: machine.uid }),
    reason,
    message: printable(message),
  }
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0
}
