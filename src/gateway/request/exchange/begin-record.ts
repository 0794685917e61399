// Starts the record of a request from its head and its connection alone.

import type { Peer } from '../../../kit/api/stream.ts'
import { createRecord, type RequestRecord } from '../../api/request-record.ts'
import type { RequestHead } from '../../core/request/request-head.ts'
import type { Gateway } from './gateway.ts'

const MAX_AUDIT_ID = 128

/** `monotonicMs` and `nowMs`: when the head was complete. */
export function beginRecord(
  gw: Gateway,
  peer: Peer,
  head: RequestHead,
  monotonicMs: number,
  nowMs: number,
): RequestRecord {
  const record = createRecord()
  record.startMs = monotonicMs
  record.startWallMs = nowMs
  record.protocol = peer.protocol
  record.connection = peer.id
  record.remoteAddress = peer.remoteAddress
  record.proxyAddress = peer.proxyAddress
  record.localAddress = peer.localAddress
  record.localPort = peer.localPort
  record.method = head.method
  record.target = head.target
  record.host = head.host
  record.userAgent = head.userAgent
  if (gw.tracer !== undefined) record.trace = gw.tracer.begin(head.traceparent, head.fields, monotonicMs)
  record.auditId = isUsableAuditId(head.auditId) ? head.auditId : gw.uuid()
  return record
}

/** Same rule as kube-apiserver; ids that could break a log field are replaced. */
function isUsableAuditId(id: string): boolean {
  if (id === '' || id.length > MAX_AUDIT_ID) return false
  for (let i = 0; i < id.length; i++) {
    const c = id.charCodeAt(i)
    if (c < 0x21 || c > 0x7e) return false
  }
  return true
}
