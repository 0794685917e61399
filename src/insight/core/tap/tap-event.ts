// One line of a tap: a request as shown to its reader. Only what is listed here leaves the gateway: no body, no header field but the user
// agent, no message of a refusal (it may quote client input), and of the query only what shown-query.ts allows.

import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { safeJson } from '../../../kit/core/text/printable.ts'
import { shownQuery } from './shown-query.ts'
import { type TapPhase, verbOf } from './tap-filter.ts'

/** A request, as in the stream of /api/v1/tap. Texts have at most 256 characters, longer ones end with `…`; '' = absent. */
export interface TapEvent {
  readonly type: 'request'
  readonly phase: TapPhase
  /** RFC 3339, UTC: when the request's head was complete, whatever the phase. */
  readonly time: string
  readonly replica: string
  /** Thread of the replica. */
  readonly thread: number
  readonly auditID: string
  readonly cluster: string
  /** The effective user. */
  readonly user: string
  /** The original user, if impersonating (kubectl --as). */
  readonly impersonator: string
  readonly userAgent: string
  readonly address: string
  readonly protocol: 'h2' | 'http/1.1'
  readonly method: string
  readonly verb: string
  /** For resource requests. */
  readonly apiGroup: string
  readonly apiVersion: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** For all others. */
  readonly path: string
  /** Redacted. */
  readonly query: string
  /** 0 = none was sent. */
  readonly code: number
  /** Reason of the gateway's refusal, and the rule; '' = forwarded. */
  readonly refusal: string
  readonly refusedBy: string
  /** Shadow mode refusals. */
  readonly shadow: readonly string[]
  /** Index of the dispatch policy and of its rule; -1 = none. */
  readonly policy: number
  readonly rule: number
  /** Name of the flow control schema. */
  readonly limit: string
  readonly endpoint: string
  readonly attempts: number
  /** Milliseconds; -1 = not reached. */
  readonly totalMs: number
  readonly responseMs: number
  readonly upstreamMs: number
  readonly requestBytes: number
  readonly responseBytes: number
  readonly aborted: '' | 'client' | 'upstream'
}

const MAX_TEXT = 256
/** A typical line has 700 characters. In a longer one texts are cut to SHORT_TEXT: escaping can turn each character into six. */
const MAX_LINE = 8192
const SHORT_TEXT = 64
const MAX_SHADOW = 8

/** The thread's contribution to each event. */
export interface TapPlace {
  readonly replica: string
  readonly thread: number
}

/** The event as a line of JSON, without line end: ASCII control and formatting characters are escaped, so that a terminal can show it. */
export function tapLine(record: RequestRecord, phase: TapPhase, place: TapPlace): string {
  const line = safeJson(tapEvent(record, phase, place, MAX_TEXT))
  return line.length <= MAX_LINE ? line : safeJson(tapEvent(record, phase, place, SHORT_TEXT))
}

/** @param most maximum characters per text */
function tapEvent(record: RequestRecord, phase: TapPhase, { replica, thread }: TapPlace, most: number): TapEvent {
  const cut = (text: string): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text)
  const { isResourceRequest } = record
  return {
    type: 'request',
    phase,
    time: new Date(record.startWallMs).toISOString(),
    replica,
    thread,
    auditID: record.auditId,
    cluster: record.cluster,
    user: cut(record.user),
    impersonator: cut(record.impersonator),
    userAgent: cut(record.userAgent),
    address: cut(record.remoteAddress),
    protocol: record.protocol,
    method: cut(record.method),
    verb: cut(verbOf(record)),
    apiGroup: cut(record.apiGroup),
    apiVersion: cut(record.apiVersion),
    resource: cut(record.resource),
    subresource: cut(record.subresource),
    namespace: cut(record.namespace),
    name: cut(record.name),
    path: isResourceRequest ? '' : cut(record.path),
    query: cut(shownQuery(record.target)),
    code: record.code,
    refusal: record.refusal,
    refusedBy: cut(record.refusalRule),
    shadow: record.shadow.slice(0, MAX_SHADOW).map(cut),
    policy: record.policy,
    rule: record.rule,
    limit: record.flowControl,
    endpoint: record.endpoint,
    attempts: record.attempts,
    totalMs: rounded(record.durationMs),
    responseMs: rounded(record.ttfbMs),
    upstreamMs: rounded(record.upstreamMs),
    requestBytes: record.requestBytes,
    responseBytes: record.responseBytes,
    aborted: record.aborted,
  }
}

/** Rounded to microseconds. */
function rounded(ms: number): number {
  return ms < 0 ? -1 : Math.round(ms * 1000) / 1000
}
