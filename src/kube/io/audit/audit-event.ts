// Formats an audit.k8s.io/v1 Event (apiserver/pkg/apis/audit/v1/types.go) as a line of JSON: for requests that the gateway forwards
// (insight/io/audit/), those to its own API server, and those to the admin listener.

import { identityJson, quote } from '../../../kit/core/text/json-quote.ts'
import { rfc3339Micro } from '../../../kit/io/world/timestamp.ts'
import type { AuditLevel, AuditStage } from '../../api/audit.ts'

/** authentication.k8s.io/v1 UserInfo. */
export interface AuditUser {
  readonly name: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** The requested object; '' = none. */
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
  /** '' = unknown, as in the next field. */
  readonly sourceIP: string
  readonly userAgent: string
  /** undefined = not a resource request. */
  readonly object: AuditObject | undefined
  /** undefined = no response yet. */
  readonly response: AuditResponse | undefined
  /** Single-line JSON; undefined = none. */
  readonly requestObject?: string | undefined
  readonly responseObject?: string | undefined
  /** Wall clock, milliseconds since the epoch. */
  readonly receivedMs: number
  readonly stageMs: number
  readonly annotations: Readonly<Record<string, string>>
  /** Additional annotations with other names: JSON of each field, preceded by a comma. */
  readonly annotationFields?: string
}

/** Without the line end. Serialized by hand: two of them are part of every request. */
export function auditLine(event: AuditEvent): string {
  let line = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"${event.level ?? 'Metadata'}"`
  line += `,"auditID":${quote(event.auditId)},"stage":"${event.stage}","requestURI":${quote(event.requestURI)}`
  line += `,"verb":${quote(event.verb)},"user":${event.user === undefined ? '{}' : userInfo(event.user)}`
  if (event.impersonatedUser !== undefined) line += `,"impersonatedUser":${userInfo(event.impersonatedUser)}`
  if (event.sourceIP !== '') line += `,"sourceIPs":[${quote(event.sourceIP)}]`
  if (event.userAgent !== '') line += `,"userAgent":${quote(event.userAgent)}`
  if (event.object !== undefined) line += `,"objectRef":${objectReference(event.object)}`
  if (event.response !== undefined) line += `,"responseStatus":${responseStatus(event.response)}`
  // Already JSON, and possibly large.
  if (event.requestObject !== undefined) line += `,"requestObject":${event.requestObject}`
  if (event.responseObject !== undefined) line += `,"responseObject":${event.responseObject}`
  line += `,"requestReceivedTimestamp":"${rfc3339Micro(event.receivedMs)}"`
  line += `,"stageTimestamp":"${rfc3339Micro(event.stageMs)}"`
  const annotations = (event.annotationFields ?? '') + annotationFields(event.annotations)
  return `${line},"annotations":{${annotations.slice(1)}}}`
}

function userInfo({ name, uid, groups, extra }: AuditUser): string {
  let fields = ''
  if (name !== '') fields += `,"username":${quote(name)}`
  if (uid !== '') fields += `,"uid":${quote(uid)}`
  if (groups.length > 0) fields += `,"groups":${identityJson(groups)}`
  const extraJson = extra === undefined ? '{}' : identityJson(extra)
  if (extraJson !== '{}') fields += `,"extra":${extraJson}`
  return `{${fields.slice(1)}}`
}

function objectReference(object: AuditObject): string {
  const { resource, namespace, name, uid, apiGroup, apiVersion, resourceVersion, subresource } = object
  let fields = `{"resource":${quote(resource)}`
  if (namespace !== '') fields += `,"namespace":${quote(namespace)}`
  if (name !== '') fields += `,"name":${quote(name)}`
  if (uid !== undefined) fields += `,"uid":${quote(uid)}`
  if (apiGroup !== '') fields += `,"apiGroup":${quote(apiGroup)}`
  fields += `,"apiVersion":${quote(apiVersion)}`
  if (resourceVersion !== undefined) fields += `,"resourceVersion":${quote(resourceVersion)}`
  if (subresource !== '') fields += `,"subresource":${quote(subresource)}`
  return `${fields}}`
}

function responseStatus({ status, message, reason, details, code }: AuditResponse): string {
  let fields = '{"metadata":{}'
  if (status !== undefined) fields += `,"status":${quote(status)}`
  if (message !== undefined) fields += `,"message":${quote(message)}`
  if (reason !== undefined) fields += `,"reason":${quote(reason)}`
  if (details !== undefined) fields += `,"details":${JSON.stringify(details)}`
  if (code !== undefined) fields += `,"code":${code}`
  return `${fields}}`
}

/** JSON of each field, preceded by a comma. */
export function annotationFields(annotations: Readonly<Record<string, string>>): string {
  let fields = ''
  for (const name of Object.keys(annotations)) fields += `,${quote(name)}:${quote(annotations[name] ?? '')}`
  return fields
}
