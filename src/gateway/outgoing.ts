// The request as upstream gets it: the client's header fields without what is not theirs to say, then who the user is.

import type { HeaderList, Peer } from '../api/stream.ts'
import type { CompiledCluster } from '../core/compiled-cluster.ts'
import { appendForwardedFor, upstreamRequestHeaders } from '../core/hop-headers.ts'
import { withoutWebSocketToken } from '../core/websocket-token.ts'
import type { Authenticated } from './authenticate.ts'

export interface OutgoingRequest {
  readonly method: string
  readonly target: string
  /** Header fields without pseudo-headers. */
  readonly fields: HeaderList
}

/**
 * One function for HTTP/1.1, HTTP/2 and upgrades. `identity` is never empty: without an Impersonate-User the request would
 * run as the gateway (CVE-2023-48312).
 */
export function outgoingRequest(
  cluster: CompiledCluster,
  peer: Peer,
  head: HeaderList,
  method: string,
  target: string,
  caller: Authenticated,
  auditId: string,
): OutgoingRequest {
  if (caller.identity.length === 0) throw new Error('a request without identity must not be forwarded')
  const fields = withoutWebSocketToken(upstreamRequestHeaders(head)).filter(dropAuditId)
  appendForwardedFor(fields, peer.remoteAddress)
  if (cluster.client.bearerToken !== '') fields.push('authorization', `Bearer ${cluster.client.bearerToken}`)
  for (const item of caller.identity) fields.push(item)
  fields.push('audit-id', auditId)
  return { method, target, fields }
}

/** Audit-ID is set by us: the client's when it was usable. Works on the flat list: drops the name and its value. */
function dropAuditId(_item: string, index: number, list: HeaderList): boolean {
  return list[index - (index % 2)] !== 'audit-id'
}
