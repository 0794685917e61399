// Answers that the gateway gives itself: every refusal leaves through here.

import type { HeaderList } from '../../../kit/api/stream.ts'
import { type Refusal, refusalResponse } from '../../../kit/core/refusal/refusal.ts'
import { warningValue, warningValues } from '../../../kit/core/refusal/warning.ts'
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
  // client-go drops the Status of discovery requests, but prints warnings: a kubectl without a cache sees the reason, too. Of
  // resources it prints both, and one is enough.
  if (refusal.refused === 'degraded' && !record.isResourceRequest)
    answer.headers.push('warning', warningValue(refusal.message))
  const noBody = record.method === 'HEAD'
  client.headers(answer.headers, noBody)
  if (!noBody) {
    if (!record.auditDecided) record.refusalBody = answer.body
    record.audit?.responseBody(answer.body)
    client.body(answer.body, true)
    record.responseBytes = answer.body.length
  }
  exchange.end()
  exchange.chargeAnswer()
}

/** Sends a response other than a refusal of the gateway, and ends the exchange. `fields` have a content-type, and no length. */
export function respondWith(
  exchange: Exchange,
  code: number,
  fields: HeaderList,
  body: Buffer,
  warnings: readonly string[],
): void {
  const { client, record, gw } = exchange
  record.code = code
  record.ttfbMs = gw.clock.monotonic() - record.startMs
  if (exchange.gone) {
    record.aborted = 'client'
    exchange.end()
    return
  }
  const head: HeaderList = [':status', String(code), ...fields, 'cache-control', 'no-cache, private']
  head.push('content-length', String(body.length), 'date', new Date(record.startWallMs).toUTCString())
  head.push('audit-id', record.auditId)
  for (const warning of warningValues(warnings)) head.push('warning', warning)
  client.headers(head, false)
  record.audit?.responseBody(body)
  client.body(body, true)
  record.responseBytes = body.length
  gw.events.responseStarted(record)
  exchange.end()
  exchange.chargeAnswer()
}
