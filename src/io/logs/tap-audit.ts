// The end of a tap as an audit event: who has looked at whose requests, by which filter, from when until when, and how many were shown.

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
  /** Events. */
  readonly shown: number
  readonly dropped: number
}

/** Without the end of the line. */
export function tapAuditLine(tap: AuditedTap): string {
  const { auditId, user, remoteAddress, query, beganMs, nowMs, shown, dropped } = tap
  return auditLine({
    auditId,
    stage: 'ResponseComplete',
    requestURI: `/api/v1/tap${query === '' ? '' : `?${query}`}`,
    verb: 'get',
    user: { name: user.name, uid: '', groups: user.groups },
    impersonatedUser: undefined,
    sourceIP: remoteAddress,
    userAgent: '',
    object: undefined,
    response: { code: 200 },
    receivedMs: beganMs,
    stageMs: nowMs,
    annotations: {
      'portcullis.io/listener': 'admin',
      'portcullis.io/tap-shown': String(shown),
      'portcullis.io/tap-dropped': String(dropped),
    },
  })
}
