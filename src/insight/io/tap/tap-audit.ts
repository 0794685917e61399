// The end of a tap as an audit event: who watched whose requests, with which filter, from when to when, and how many were shown.

import { auditLine } from '../../../kube/io/audit/audit-event.ts'

interface AuditedTap {
  readonly auditId: string
  /** The name is '' if the admin listener requires no login. */
  readonly user: { readonly name: string; readonly groups: readonly string[] }
  readonly remoteAddress: string
  /** As requested. */
  readonly query: string
  /** Wall clock, milliseconds since the epoch. */
  readonly beganMs: number
  readonly nowMs: number
  /** Events. */
  readonly shown: number
  readonly dropped: number
}

/** Without the line end. */
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
