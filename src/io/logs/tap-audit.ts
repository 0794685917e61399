// A tap as audit events: who looks at whose requests, by which filter, from when until when, and how many were shown.

import { auditLine } from './audit-event.ts'

export interface AuditedTap {
  readonly auditId: string
  /** The name is '' where the admin listener asks for no login. */
  readonly user: { readonly name: string; readonly groups: readonly string[] }
  readonly remoteAddress: string
  /** As it was asked for. */
  readonly query: string
  /** Wall clock, milliseconds since the epoch. */
  readonly beganMs: number
  readonly nowMs: number
  /** undefined = it begins. */
  readonly ended: { readonly shown: number; readonly dropped: number } | undefined
}

/** Without the end of the line. */
export function tapAuditLine({ auditId, user, remoteAddress, query, beganMs, nowMs, ended }: AuditedTap): string {
  return auditLine({
    auditId,
    stage: ended === undefined ? 'ResponseStarted' : 'ResponseComplete',
    requestURI: `/api/v1/tap${query === '' ? '' : `?${query}`}`,
    verb: 'get',
    user: { ...user, uid: '' },
    impersonatedUser: undefined,
    sourceIP: remoteAddress,
    userAgent: '',
    object: undefined,
    response: { code: 200 },
    receivedMs: beganMs,
    stageMs: nowMs,
    annotations:
      ended === undefined
        ? {}
        : { 'portcullis.io/tap-shown': String(ended.shown), 'portcullis.io/tap-dropped': String(ended.dropped) },
  })
}
