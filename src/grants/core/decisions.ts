// Who may ask for a grant, approve it and end it, and what that makes of its status. Users are those of credentials: a request that impersonates another user
// neither asks nor approves, since a user who may impersonate could be two.

import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { isRecord, recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import type { ObjectWriter } from '../../kube/api/resource-kind.ts'
import { type StatusError, type StatusReason, statusError } from '../../kube/api/status.ts'
import type { AccessGrantStatus } from '../api/access-grant.ts'
import { isTooLate, readGrant } from './read-grant.ts'

/** A new one, with what the server says of it. @param by undefined = no user asks @throws {StatusError} */
export function asked(object: JsonObject, by: ObjectWriter | undefined): JsonObject {
  if (by === undefined) throw refused(object, 'Forbidden', 'only a user can request access')
  if (by.impersonates) throw refused(object, 'Forbidden', IMPERSONATED)
  const time = textOf(recordOf(object['metadata'])['creationTimestamp'])
  const status: AccessGrantStatus = { phase: 'Pending', requestedBy: { user: by.user.name, time } }
  const { spec } = object
  if (!isRecord(spec) || spec['subject'] !== undefined) return { ...object, status }
  return { ...object, spec: { subject: { kind: 'User', name: by.user.name }, ...spec }, status }
}

/** @param uid of the object that the approver has read: another one may have its name by now @throws {StatusError} */
export function approved(
  object: JsonObject,
  by: ObjectWriter | undefined,
  uid: string,
  nowMs: number,
): AccessGrantStatus {
  const { spec, status, phase, uid: own } = readGrant(object)
  if (by === undefined || by.impersonates) throw refused(object, 'Forbidden', IMPERSONATED)
  const { name, groups } = by.user
  if (uid === '') throw refused(object, 'BadRequest', 'the approval must have the uid of the grant: {"uid": "..."}')
  if (uid !== own) throw refused(object, 'Conflict', 'the approval is for another grant that had this name')
  if (status.requestedBy?.user === name) throw refused(object, 'Forbidden', `${quoted(name)} requested it`)
  if (spec.subject.kind === 'User' && spec.subject.name === name) {
    throw refused(object, 'Forbidden', `it is for ${quoted(name)}`)
  }
  if (spec.subject.kind === 'Group' && groups.includes(spec.subject.name)) {
    throw refused(object, 'Forbidden', `it is for a group that ${quoted(name)} is in`)
  }
  if (phase !== 'Pending') throw refused(object, 'Conflict', `it is ${phase}`)
  if (isTooLate(status, nowMs)) {
    throw refused(object, 'Conflict', 'it was not approved in time; request another one')
  }
  const startsMs = Math.max(nowMs, Date.parse(spec.notBefore ?? '') || 0)
  return {
    ...status,
    phase: startsMs > nowMs ? 'Approved' : 'Active',
    approvedBy: { user: name, time: metaTime(nowMs) },
    startsAt: metaTime(startsMs),
    endsAt: metaTime(startsMs + spec.durationSeconds * 1000),
  }
}

/** By an approver, or by those that it concerns. @throws {StatusError} */
export function endedByUser(object: JsonObject, by: ObjectWriter | undefined, nowMs: number): AccessGrantStatus {
  const { spec, status, phase } = readGrant(object)
  const { name } = by?.user ?? { name: '' }
  const isTheirs = status.requestedBy?.user === name || (spec.subject.kind === 'User' && spec.subject.name === name)
  if (by === undefined || !(isTheirs || by.may('create', 'approval'))) {
    throw refused(
      object,
      'Forbidden',
      'a grant may be ended by its requester, by the user that it is for, or by an approver',
    )
  }
  if (phase === 'Ended') throw refused(object, 'Conflict', 'it has ended')
  const time = metaTime(nowMs)
  return { ...status, phase: 'Ended', endedBy: { user: name, time }, endedAt: time, endReason: 'EndedByUser' }
}

const IMPERSONATED = 'users request and approve access themselves, not with --as'

function refused(object: JsonObject, reason: StatusReason, why: string): StatusError {
  const name = nameOf(object)
  const message = `accessgrants.portcullis.io ${quoted(name)} is forbidden: ${why}`
  const text = reason === 'Forbidden' ? message : `accessgrants.portcullis.io ${quoted(name)}: ${why}`
  return statusError(reason, text, { name, group: 'portcullis.io', kind: 'accessgrants' })
}

function quoted(text: string): string {
  return JSON.stringify(text)
}

/** By who asked: what the store holds for one user is limited. */
export function requesterClaims(object: JsonObject): readonly string[] {
  const { requestedBy } = readGrant(object).status
  return requestedBy === undefined ? [] : [requestedBy.user]
}
