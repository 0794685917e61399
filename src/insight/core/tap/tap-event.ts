// One line of a tap: a request as shown to its reader. Only what is listed here leaves the gateway: no body, no header field but the user
// agent, no message of a refusal (it may quote client input), and of the query only what `shownQuery` allows.

import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { QueryReader } from '../../../gateway/core/request/query-reader.ts'
import { safeJson } from '../../../kit/core/text/printable.ts'
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

// What a tap shows of a query: values only for parameters that kube-apiserver knows and that can't hold a secret. For its other parameters
// the name; all the rest is only counted, because a bare token would look like a name.

/** metav1.ListOptions, GetOptions, CreateOptions and so on, PodLogOptions, PodExecOptions without its command. */
const SHOWN: ReadonlySet<string> = new Set([
  'allowWatchBookmarks',
  'container',
  'dryRun',
  'exact',
  'export',
  'fieldManager',
  'fieldSelector',
  'fieldValidation',
  'follow',
  'force',
  'gracePeriodSeconds',
  'ignoreStoreReadErrorWithClusterBreakingPotential',
  'includeUninitialized',
  'insecureSkipTLSVerifyBackend',
  'labelSelector',
  'limit',
  'limitBytes',
  'orphanDependents',
  'ports',
  'pretty',
  'previous',
  'propagationPolicy',
  'resourceVersion',
  'resourceVersionMatch',
  'sendInitialEvents',
  'sinceSeconds',
  'sinceTime',
  'stderr',
  'stdin',
  'stdout',
  'stream',
  'tailLines',
  'timeout',
  'timeoutSeconds',
  'timestamps',
  'tty',
  'verbose',
  'watch',
])

/** Their values are secrets, hold parts of objects, or are free text. */
const REDACTED: ReadonlySet<string> = new Set([
  'access_token',
  'api_key',
  'apikey',
  'authorization',
  'client_secret',
  'code',
  'command',
  'continue',
  'id_token',
  'key',
  'password',
  'path',
  'refresh_token',
  'secret',
  'sig',
  'signature',
  'state',
  'token',
])

const MAX_VALUE = 64
const MAX_QUERY = 256
/** Longer queries are not read: the thread that serves the request writes the event. */
const MAX_READ = 4096

/**
 * Without the `?`; '' if there is none. Slightly more than 256 characters at most.
 * Without the `?`; '' when there is none. At most a little more than 256 characters.
 * @param target the request target as received
 */
export function shownQuery(target: string): string {
  const mark = target.indexOf('?')
  if (mark < 0 || mark === target.length - 1) return ''
  const query = target.slice(mark + 1)
  if (query.length > MAX_READ) return `[${query.length} characters]`
  const reader = new QueryReader(query)
  const parts: string[] = []
  let length = 0
  let others = query.split(/[&;]/).filter((part) => part !== '').length
  while (length < MAX_QUERY && reader.next()) {
    const part = shownParameter(reader)
    if (part === '') continue
    if (parts.at(-1) !== part) {
      parts.push(part)
      length += part.length
    }
    others--
  }
  if (others > 0) parts.push(`[${others} more]`)
  return parts.join('&')
}

/** '' = not shown. */
function shownParameter(reader: QueryReader): string {
  if (REDACTED.has(reader.key.toLowerCase())) return `${reader.key.toLowerCase()}=[redacted]`
  if (!SHOWN.has(reader.key)) return ''
  const value = reader.value() ?? ''
  return `${reader.key}=${value.length > MAX_VALUE ? `${value.slice(0, MAX_VALUE)}…` : value}`
}
