// Who has used what shows or changes the inside of the process, or has opened a tap: one line in the log, and an audit event.

import { randomUUID } from 'node:crypto'
import type { AdminAccess, AdminUser } from '../../admin/route.ts'
import type { Logger } from '../../api/ports/ports.ts'
import type { PlainRequest } from '../../io/listener/http-plain.ts'
import { auditLine } from '../../io/logs/audit-event.ts'

/** Takes a line, without its end. */
export type WriteAudit = (line: string) => void

/** Of what a client says, in logs. */
const MAX_TEXT = 256

export function audited(access: AdminAccess, log: Logger, audit: WriteAudit | undefined): AdminAccess {
  return async (request, route) => {
    const admitted = await access(request, route)
    if (!(route.audited ?? route.access === 'admin')) return admitted
    const { method, path, remoteAddress } = request
    const code = 'refused' in admitted ? admitted.refused.code : 200
    const user = 'refused' in admitted ? undefined : admitted.user
    // Refusals are in the audit log alone: whoever has no credential could fill the log.
    const fields = { method, path: path.slice(0, MAX_TEXT), user: nameOf(user), address: remoteAddress }
    if (user !== undefined) log.info('admin listener used', fields)
    audit?.(eventLine(request, user, code))
    return admitted
  }
}

function nameOf(user: AdminUser | undefined): string {
  return (user?.name ?? '').slice(0, MAX_TEXT) || '(on this machine)'
}

function eventLine(request: PlainRequest, user: AdminUser | undefined, code: number): string {
  const now = Date.now()
  const query = request.query.toString()
  return auditLine({
    auditId: randomUUID(),
    stage: code === 200 ? 'ResponseStarted' : 'ResponseComplete',
    requestURI: (query === '' ? request.path : `${request.path}?${query}`).slice(0, 1024),
    verb: request.method.toLowerCase(),
    user: user && { name: user.name, uid: '', groups: user.groups },
    impersonatedUser: undefined,
    sourceIP: request.remoteAddress,
    userAgent: request.header('user-agent').slice(0, MAX_TEXT),
    object: undefined,
    response: { code },
    receivedMs: now,
    stageMs: now,
    annotations: { 'portcullis.io/listener': 'admin' },
  })
}
