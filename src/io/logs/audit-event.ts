// One audit.k8s.io/v1 Event at level Metadata (apiserver/pkg/apis/audit/v1/types.go) as a line of JSON: for the requests that
// the gateway forwards (audit-log.ts) and for those to its own API server.

import { rfc3339Micro } from '../world/timestamp.ts'

export type AuditStage = 'ResponseStarted' | 'ResponseComplete'

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
}

export interface AuditEvent {
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
  readonly response: {
    readonly code: number
    readonly status?: 'Failure' | undefined
    readonly message?: string | undefined
    readonly reason?: string | undefined
  }
  /** Wall clock, milliseconds since the epoch. */
  readonly receivedMs: number
  readonly stageMs: number
  readonly annotations: Readonly<Record<string, string>>
}

/** Without the end of the line. */
export function auditLine(event: AuditEvent): string {
  const { status, message, reason, code } = event.response
  return JSON.stringify({
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: event.auditId,
    stage: event.stage,
    requestURI: event.requestURI,
    verb: event.verb,
    user: event.user === undefined ? {} : userInfo(event.user),
    impersonatedUser: event.impersonatedUser === undefined ? undefined : userInfo(event.impersonatedUser),
    sourceIPs: event.sourceIP === '' ? undefined : [event.sourceIP],
    userAgent: event.userAgent === '' ? undefined : event.userAgent,
    objectRef: event.object === undefined ? undefined : objectReference(event.object),
    responseStatus: { metadata: {}, status, message, reason, code },
    requestReceivedTimestamp: rfc3339Micro(event.receivedMs),
    stageTimestamp: rfc3339Micro(event.stageMs),
    annotations: event.annotations,
  })
}

function userInfo({ name, uid, groups, extra = {} }: AuditUser): object {
  return {
    username: name === '' ? undefined : name,
    uid: uid === '' ? undefined : uid,
    groups: groups.length === 0 ? undefined : groups,
    extra: Object.keys(extra).length === 0 ? undefined : extra,
  }
}

function objectReference({ resource, namespace, name, apiGroup, apiVersion, subresource }: AuditObject): object {
  return {
    resource,
    namespace: namespace === '' ? undefined : namespace,
    name: name === '' ? undefined : name,
    apiGroup: apiGroup === '' ? undefined : apiGroup,
    apiVersion,
    subresource: subresource === '' ? undefined : subresource,
  }
}
