// One line of a tap: a request as its reader sees it. Only what is listed here leaves the gateway: no body, no header field but
// the user agent, no message of a refusal (it may quote what the client sent), and of the query what shown-query.ts allows.

import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { safeJson } from '../../../kit/core/text/printable.ts'
import { shownQuery } from './shown-query.ts'
import { type TapPhase, verbOf } from './tap-filter.ts'

/** A request, as in the stream of /api/v1/tap. Texts are at most 256 characters, a longer one ends with `…`; '' = there is none. */
export interface TapEvent {
  readonly type: 'request'
  readonly phase: TapPhase
  /** RFC 3339, UTC: when the request's head was complete, whatever the phase. */
  readonly time: string
  readonly replica: string
  /** Of the replica. */
  readonly thread: number
  readonly auditID: string
  readonly cluster: string
  /** The user that the request runs as. */
  readonly user: string
  /** Who sent it, if somebody else (kubectl --as). */
  readonly impersonator: string
  readonly userAgent: string
  readonly address: string
  readonly protocol: 'h2' | 'http/1.1'
  readonly method: string
  readonly verb: string
  /** Of resource requests. */
  readonly apiGroup: string
  readonly apiVersion: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** Of all others. */
  readonly path: string
  /** Redacted. */
  readonly query: string
  /** 0 = none was sent. */
  readonly code: number
  /** Reason of the gateway's refusal, and what refused; '' = it was forwarded. */
  readonly refusal: string
  readonly refusedBy: string
  /** What would have refused, were it not in shadow mode. */
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
/** An ordinary one has 700 characters. In a longer one texts are cut to SHORT_TEXT: a client can make each character six. */
const MAX_LINE = 8192
const SHORT_TEXT = 64
const MAX_SHADOW = 8

/** What a thread adds to each event. */
export interface TapPlace {
  readonly replica: string
  readonly thread: number
}

/** The event as a line of JSON, without its end: ASCII control and formatting characters are escaped, so a terminal can show it. */
export function tapLine(record: RequestRecord, phase: TapPhase, place: TapPlace): string {
  const line = safeJson(tapEvent(record, phase, place, MAX_TEXT))
  return line.length <= MAX_LINE ? line : safeJson(tapEvent(record, phase, place, SHORT_TEXT))
}

/** @param most characters of each text */
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

/** Microseconds are enough. */
function rounded(ms: number): number {
  return ms < 0 ? -1 : Math.round(ms * 1000) / 1000
}
