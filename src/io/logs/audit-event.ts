// One audit.k8s.io/v1 Event (apiserver/pkg/apis/audit/v1/types.go) as a line of JSON: for the requests that the gateway forwards
// (audit-log.ts, policy-audit.ts) and for those to its own API server.

import type { AuditLevel, AuditStage } from '../../core/audit/policy.ts'
import { rfc3339Micro } from '../world/timestamp.ts'

/** authentication.k8s.io/v1 UserInfo. */
export interface AuditUser {
  readonly name: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** The object that a request is about; '' = none. */
export interface AuditObject {
  readonly resource: string
  readonly namespace: string
  readonly name: string
  readonly apiGroup: string
  readonly apiVersion: string
  readonly subresource: string
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
}

export interface AuditResponse {
  readonly code: number | undefined
  readonly status?: string | undefined
  readonly message?: string | undefined
  readonly reason?: string | undefined
  readonly details?: unknown
}

export interface AuditEvent {
  /** Default Metadata. */
  readonly level?: AuditLevel
  readonly auditId: string
  readonly stage: AuditStage
  readonly requestURI: string
  readonly verb: string
  /** The user who sent the request; undefined = unknown. */
  readonly user: AuditUser | undefined
  /** The impersonated user, if any. */
  readonly impersonatedUser: AuditUser | undefined
  /** '' = not known; so it is with the next one. */
  readonly sourceIP: string
  readonly userAgent: string
  /** undefined = not a request for a resource. */
  readonly object: AuditObject | undefined
  /** undefined = there is none yet. */
  readonly response: AuditResponse | undefined
  /** JSON in one line; undefined = none. */
  readonly requestObject?: string | undefined
  readonly responseObject?: string | undefined
  /** Wall clock, milliseconds since the epoch. */
  readonly receivedMs: number
  readonly stageMs: number
  readonly annotations: Readonly<Record<string, string>>
}

/** Without the end of the line. */
export function auditLine(event: AuditEvent): string {
  const line = JSON.stringify({
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: event.level ?? 'Metadata',
    auditID: event.auditId,
    stage: event.stage,
    requestURI: event.requestURI,
    verb: event.verb,
    user: event.user === undefined ? {} : userInfo(event.user),
    impersonatedUser: event.impersonatedUser === undefined ? undefined : userInfo(event.impersonatedUser),
    sourceIPs: event.sourceIP === '' ? undefined : [event.sourceIP],
    userAgent: event.userAgent === '' ? undefined : event.userAgent,
    objectRef: event.object === undefined ? undefined : objectReference(event.object),
    responseStatus: event.response === undefined ? undefined : { metadata: {}, ...event.response },
    requestReceivedTimestamp: rfc3339Micro(event.receivedMs),
    stageTimestamp: rfc3339Micro(event.stageMs),
    annotations: event.annotations,
  })
  if (event.requestObject === undefined && event.responseObject === undefined) return line
  // They are JSON already, and may be large.
  const request = event.requestObject === undefined ? '' : `,"requestObject":${event.requestObject}`
  const response = event.responseObject === undefined ? '' : `,"responseObject":${event.responseObject}`
  return `${line.slice(0, -1)}${request}${response}}`
}

function userInfo({ name, uid, groups, extra = {} }: AuditUser): object {
  return {
    username: name === '' ? undefined : name,
    uid: uid === '' ? undefined : uid,
    groups: groups.length === 0 ? undefined : groups,
    extra: Object.keys(extra).length === 0 ? undefined : extra,
  }
}

function objectReference(object: AuditObject): object {
  const { resource, namespace, name, uid, apiGroup, apiVersion, resourceVersion, subresource } = object
  return {
    resource,
    namespace: namespace === '' ? undefined : namespace,
    name: name === '' ? undefined : name,
    uid,
    apiGroup: apiGroup === '' ? undefined : apiGroup,
    apiVersion,
    resourceVersion,
    subresource: subresource === '' ? undefined : subresource,
  }
}
