// Answers that the gateway gives itself: every refusal leaves through here.

import { type Refusal, refusalResponse } from '../core/refusal.ts'
import { warningValue } from '../core/warning.ts'
import type { Exchange } from './exchange.ts'

/** Answers with the refusal's Status, records why, and ends the exchange. */
export function respond(exchange: Exchange, refusal: Refusal): void {
  const { client, record } = exchange
  const answer = refusalResponse(refusal, { isEvents: record.resource === 'events' })
  record.code = Number(answer.headers[1])
  record.refusal = refusal.refused
  record.refusalRule = refusal.rule
  record.message = refusal.message
  if (exchange.gone) {
    record.aborted = 'client'
    exchange.end()
    return
  }
  // RFC 9110 section 6.6.1: we are the origin of this answer.
  answer.headers.push('date', new Date(record.startWallMs).toUTCString(), 'audit-id', record.auditId)
  // client-go drops the Status of discovery requests, but prints warnings: a kubectl without a cache sees the reason, too.
  if (refusal.refused === 'degraded') answer.headers.push('warning', warningValue(refusal.message))
  const noBody = record.method === 'HEAD'
  client.headers(answer.headers, noBody)
  if (!noBody) {
    client.body(answer.body, true)
    record.responseBytes = answer.body.length
  }
  exchange.end()
}
