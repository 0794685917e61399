// The audit log of requests to clusters: audit.k8s.io/v1 Events at level Metadata for every request, including refused ones, with the decision and
// its cause in annotations. The access log's switches do not apply.

import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { readSessionRequest, sessionKind } from '../../../gateway/core/request/session-request.ts'
import { REFUSAL_TABLE, type RefusalReason } from '../../../kit/core/refusal/refusal.ts'
import { quote } from '../../../kit/core/text/json-quote.ts'
import { safeJson } from '../../../kit/core/text/printable.ts'
import type { AuditStage } from '../../../kube/api/audit.ts'
import { type AuditEvent, type AuditObject, annotationFields, auditLine } from '../../../kube/io/audit/audit-event.ts'

interface AuditLog {
  /** A long-running request's response has begun: stage ResponseStarted. */
  responseStarted(record: RequestRecord): void
  /** Any request has ended: stage ResponseComplete. */
  responseComplete(record: RequestRecord): void
}

/** What an audit policy adds to an event. */
export interface AuditAdditions
  extends Partial<
    Pick<AuditEvent, 'userAgent' | 'level' | 'response' | 'object' | 'requestObject' | 'responseObject'>
  > {
  /** In addition to the request's own. */
  readonly annotations?: Readonly<Record<string, string>>
}

export function createAuditLog(write: (line: string) => void): AuditLog {
  return {
    responseStarted: (record) => {
      if (record.longRunning) write(auditEvent(record, 'ResponseStarted', record.ttfbMs))
    },
    responseComplete: (record) => write(auditEvent(record, 'ResponseComplete', record.durationMs)),
  }
}

/** A line. @param afterMs from the request head to the stage @param added overrides the record */
export function auditEvent(
  record: RequestRecord,
  stage: AuditStage,
  afterMs: number,
  added: AuditAdditions = {},
): string {
  const effective = { name: record.user, uid: record.uid, groups: record.groups, extra: record.extra }
  const impersonated = record.impersonator !== ''
  const sender = {
    name: record.impersonator,
    uid: record.impersonatorUid,
    groups: record.impersonatorGroups,
    extra: record.impersonatorExtra,
  }
  return auditLine({
    level: added.level ?? 'Metadata',
    auditId: record.auditId,
    stage,
    requestURI: record.target,
    // A resource request may have no verb (OPTIONS).
    verb: record.verb === '' && !record.isResourceRequest ? record.method.toLowerCase() : record.verb,
    user: impersonated ? sender : effective,
    // kube-apiserver does not know it yet at the first stage.
    impersonatedUser: impersonated && stage !== 'RequestReceived' ? effective : undefined,
    sourceIP: record.remoteAddress,
    userAgent: added.userAgent ?? record.userAgent,
    object: added.object ?? (record.isResourceRequest ? auditObject(record) : undefined),
    response: stage === 'RequestReceived' ? undefined : (added.response ?? responseStatus(record)),
    requestObject: added.requestObject,
    responseObject: added.responseObject,
    receivedMs: record.startWallMs,
    stageMs: record.startWallMs + Math.max(0, afterMs),
    annotations: added.annotations ?? NO_ANNOTATIONS,
    annotationFields: ownAnnotations(record),
  })
}

const NO_ANNOTATIONS = {}

/** The record's own `uid` is the user's. */
export function auditObject(record: RequestRecord): AuditObject {
  const { resource, namespace, name, apiGroup, apiVersion, subresource } = record
  return { resource, namespace, name, apiGroup, apiVersion, subresource }
}

export function responseStatus(record: RequestRecord): NonNullable<AuditEvent['response']> {
  const { code, refusal, message } = record
  if (refusal === '') return { code }
  const reason = isRefusalReason(refusal) ? REFUSAL_TABLE[refusal].statusReason : undefined
  return { status: 'Failure', message, reason, code }
}

function isRefusalReason(text: string): text is RefusalReason {
  return Object.hasOwn(REFUSAL_TABLE, text)
}

/** Values of annotations are strings. */
function ownAnnotations(record: RequestRecord): string {
  let fields = `,"portcullis.io/decision":"${record.refusal === '' ? 'forward' : 'refuse'}"`
  if (record.proxyAddress !== '') fields += `,"portcullis.io/proxy-address":${quote(record.proxyAddress)}`
  if (record.cluster !== '') fields += `,"portcullis.io/cluster":${quote(record.cluster)}`
  if (record.federation !== '') fields += `,"portcullis.io/federation":${quote(record.federation)}`
  if (record.accessGrant !== '') fields += `,"portcullis.io/access-grant":${quote(record.accessGrant)}`
  if (record.policy >= 0) fields += `,"portcullis.io/policy":"${record.policy}"`
  if (record.rule >= 0) fields += `,"portcullis.io/rule":"${record.rule}"`
  if (record.endpoint !== '') fields += `,"portcullis.io/endpoint":${quote(record.endpoint)}`
  if (record.flowControl !== '') fields += `,"portcullis.io/flow-control":${quote(record.flowControl)}`
  if (record.refusal !== '') fields += `,"portcullis.io/reason":${quote(record.refusal)}`
  if (record.refusalRule !== '') fields += `,"portcullis.io/refused-by":${quote(record.refusalRule)}`
  if (record.shadow.length > 0) fields += `,"portcullis.io/shadow":${quote(record.shadow.join(', '))}`
  if (record.protection !== '') fields += `,"portcullis.io/protection":${quote(record.protection)}`
  fields += sessionFields(record)
  if (record.aborted !== '') fields += `,"portcullis.io/aborted-by":"${record.aborted}"`
  return record.auditAnnotations === undefined ? fields : fields + annotationFields(record.auditAnnotations)
}

/** JSON of annotations, each preceded by a comma; '' = not a session. A refused one has those of its request. */
function sessionFields(record: RequestRecord): string {
  const kind = sessionKind(record)
  return (kind === undefined ? '' : requestFields(record, kind)) + recordedFields(record)
}

function requestFields({ target }: RequestRecord, kind: NonNullable<ReturnType<typeof sessionKind>>): string {
  const { container, command, omitted, ports, streams } = readSessionRequest(kind, target)
  let fields = ''
  if (container !== '') fields += annotation('container', container)
  // A list in JSON: an argument may contain blanks.
  if (command.length > 0) fields += annotation('command', safeJson(command))
  if (omitted > 0) fields += annotation('command-omitted', String(omitted))
  if (ports.length > 0) fields += annotation('ports', ports.join(','))
  if (streams.length > 0) fields += annotation('streams', streams.join(','))
  return fields
}

/** For any upgraded connection. */
function recordedFields({ session, requestBytes, responseBytes }: RequestRecord): string {
  if (session === undefined) return ''
  const fields = annotation('protocol', session.protocol)
  const { endedBy, report } = session
  if (endedBy === '') return fields
  const ended =
    fields +
    annotation('bytes-from-client', String(requestBytes)) +
    annotation('bytes-to-client', String(responseBytes)) +
    annotation('ended-by', endedBy)
  if (report === undefined) return ended
  const { recording, incomplete, outcome } = report
  return (
    ended +
    (recording === '' ? '' : annotation('recording', recording)) +
    (incomplete === '' ? '' : annotation('recording-incomplete', incomplete)) +
    (outcome === '' ? '' : annotation('outcome', outcome))
  )
}

/** Safe to print on a terminal: the values are the client's and upstream's. */
function annotation(name: string, value: string): string {
  return `,"portcullis.io/session-${name}":${safeJson(value)}`
}
