// The audit log: audit.k8s.io/v1 Events at level Metadata (apiserver/pkg/apis/audit/v1/types.go) for every request,
// refused ones included, with the decision and what made it in annotations. Every switch of the access log is ignored.

import type { RequestRecord } from '../api/request-record.ts'
import { REFUSAL_TABLE, type RefusalReason } from '../core/refusal.ts'
import { rfc3339Micro } from './timestamp.ts'

export interface AuditLog {
  /** A long-running request's response has begun: stage ResponseStarted. */
  responseStarted(record: RequestRecord): void
  /** Any request is over: stage ResponseComplete. */
  responseComplete(record: RequestRecord): void
}

export function createAuditLog(write: (line: string) => void): AuditLog {
  return {
    responseStarted: (record) => {
      if (record.longRunning) write(JSON.stringify(auditEvent(record, 'ResponseStarted', record.ttfbMs)))
    },
    responseComplete: (record) => write(JSON.stringify(auditEvent(record, 'ResponseComplete', record.durationMs))),
  }
}

function auditEvent(record: RequestRecord, stage: string, afterMs: number): object {
  const effective = userOf(record.user, record.uid, record.groups)
  const impersonated = record.impersonator !== ''
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: record.auditId,
    stage,
    requestURI: record.target,
    verb: record.verb === '' ? record.method.toLowerCase() : record.verb,
    user: impersonated ? userOf(record.impersonator, record.impersonatorUid, record.impersonatorGroups) : effective,
    impersonatedUser: impersonated ? effective : undefined,
    sourceIPs: record.remoteAddress === '' ? undefined : [record.remoteAddress],
    userAgent: record.userAgent === '' ? undefined : record.userAgent,
    objectRef: record.isResourceRequest ? objectRef(record) : undefined,
    responseStatus: responseStatus(record),
    requestReceivedTimestamp: rfc3339Micro(record.startWallMs),
    stageTimestamp: rfc3339Micro(record.startWallMs + Math.max(0, afterMs)),
    annotations: annotations(record),
  }
}

function userOf(username: string, uid: string, groups: readonly string[]): object {
  return {
    username: username === '' ? undefined : username,
    uid: uid === '' ? undefined : uid,
    groups: groups.length === 0 ? undefined : groups,
  }
}

function objectRef(record: RequestRecord): object {
  return {
    resource: record.resource,
    namespace: record.namespace === '' ? undefined : record.namespace,
    name: record.name === '' ? undefined : record.name,
    apiGroup: record.apiGroup === '' ? undefined : record.apiGroup,
    apiVersion: record.apiVersion,
    subresource: record.subresource === '' ? undefined : record.subresource,
  }
}

function responseStatus(record: RequestRecord): object {
  if (record.refusal === '') return { metadata: {}, code: record.code }
  const reason = isRefusalReason(record.refusal) ? REFUSAL_TABLE[record.refusal].statusReason : undefined
  return { metadata: {}, status: 'Failure', message: record.message, reason, code: record.code }
}

function isRefusalReason(text: string): text is RefusalReason {
  return Object.hasOwn(REFUSAL_TABLE, text)
}

/** Values of annotations are strings. */
function annotations(record: RequestRecord): Record<string, string> {
  const found: Record<string, string> = {
    'portcullis.io/decision': record.refusal === '' ? 'forward' : 'refuse',
  }
  if (record.cluster !== '') found['portcullis.io/cluster'] = record.cluster
  if (record.policy >= 0) found['portcullis.io/policy'] = String(record.policy)
  if (record.rule >= 0) found['portcullis.io/rule'] = String(record.rule)
  if (record.endpoint !== '') found['portcullis.io/endpoint'] = record.endpoint
  if (record.flowControl !== '') found['portcullis.io/flow-control'] = record.flowControl
  if (record.refusal !== '') found['portcullis.io/reason'] = record.refusal
  if (record.refusalRule !== '') found['portcullis.io/refused-by'] = record.refusalRule
  if (record.shadow.length > 0) found['portcullis.io/shadow'] = record.shadow.join(', ')
  if (record.protection !== '') found['portcullis.io/protection'] = record.protection
  if (record.aborted !== '') found['portcullis.io/aborted-by'] = record.aborted
  if (record.auditAnnotations !== undefined) Object.assign(found, record.auditAnnotations)
  return found
}
