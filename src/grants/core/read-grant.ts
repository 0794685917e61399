// An AccessGrant as it is stored, read: what is in force of it, and what is due. Anything that is missing means that nothing is granted.

import type { AccessGrantInForce } from '../../gateway/core/identity/access-grants.ts'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import type { AccessGrantPhase, AccessGrantSpec, AccessGrantStatus } from '../api/access-grant.ts'

/** How long a request for access waits for its approval. */
export const APPROVAL_WITHIN_MS: number = 24 * 60 * 60 * 1000
/** How long an ended grant can still be looked at; the audit log has it for longer. */
export const ENDED_KEPT_MS: number = 30 * 24 * 60 * 60 * 1000

interface ReadGrant {
  readonly name: string
  readonly uid: string
  readonly spec: AccessGrantSpec
  readonly status: AccessGrantStatus
  readonly phase: AccessGrantPhase
}

/** The server has checked it against the schema when it was written. */
export function readGrant(object: JsonObject): ReadGrant {
  const status = recordOf(object['status']) as AccessGrantStatus
  return {
    name: nameOf(object),
    uid: textOf(recordOf(object['metadata'])['uid']),
    spec: object['spec'] as AccessGrantSpec,
    status,
    phase: status.phase ?? 'Ended',
  }
}

/** undefined = nothing is granted by it. */
export function inForceOf(object: JsonObject): AccessGrantInForce | undefined {
  const { name, uid, spec, status, phase } = readGrant(object)
  const { requestedBy, approvedBy } = status
  const [fromMs, untilMs] = [Date.parse(status.startsAt ?? ''), Date.parse(status.endsAt ?? '')]
  if (phase !== 'Approved' && phase !== 'Active') return undefined
  if (requestedBy === undefined || approvedBy === undefined || requestedBy.user === approvedBy.user) return undefined
  if (Number.isNaN(fromMs) || Number.isNaN(untilMs) || isBeingDeleted(object)) return undefined
  const { subject, clusters, groups } = spec
  return { name, uid, subject, clusters, groups, fromMs, untilMs }
}

/** With finalizers, a deleted object is still there. */
function isBeingDeleted({ metadata }: JsonObject): boolean {
  return textOf(recordOf(metadata)['deletionTimestamp']) !== ''
}

/**
 * @param isOver whether its time is over by another clock than `nowMs`
 * @returns undefined = nothing is due
 */
export function dueStatus(object: JsonObject, nowMs: number, isOver: boolean): AccessGrantStatus | undefined {
  const { status, phase } = readGrant(object)
  if (phase === 'Ended') return undefined
  const ended = (endReason: 'Expired' | 'NotApproved'): AccessGrantStatus => {
    return { ...status, phase: 'Ended', endedAt: metaTime(nowMs), endReason }
  }
  if (phase === 'Pending') return isTooLate(status, nowMs) ? ended('NotApproved') : undefined
  const inForce = inForceOf(object)
  if (inForce === undefined || isOver || nowMs >= inForce.untilMs) return ended('Expired')
  return phase === 'Approved' && nowMs >= inForce.fromMs ? { ...status, phase: 'Active' } : undefined
}

/** Whether a request for access has waited too long for its approval. */
export function isTooLate({ requestedBy }: AccessGrantStatus, nowMs: number): boolean {
  const askedMs = Date.parse(requestedBy?.time ?? '')
  return !(nowMs < askedMs + APPROVAL_WITHIN_MS)
}

/** Whether it ended long ago, and need not be kept. */
export function isPastKeeping(object: JsonObject, nowMs: number): boolean {
  const { status, phase } = readGrant(object)
  return phase === 'Ended' && nowMs >= Date.parse(status.endedAt ?? '') + ENDED_KEPT_MS
}
