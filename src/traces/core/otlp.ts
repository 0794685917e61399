// Spans of a traced request in OTLP's JSON (opentelemetry-proto, trace/v1): attributes follow HTTP's stable semantic conventions, and
// Kubernetes' own names where there are none. Written as text, on the thread that served the request.

import type { RequestRecord } from '../../gateway/api/request-record.ts'
import type { RequestTrace, TraceAttempt } from '../../gateway/api/request-trace.ts'
import { quote } from '../../kit/core/text/json-quote.ts'
import { ThreadStream } from '../../kit/core/topics/streams.ts'
import { firstInteger, firstText, nextBool, nextInteger, nextText, quoteNumber, UnixNanos } from './otlp-json.ts'

/** Spans of one request. */
export interface WrittenSpans {
  readonly count: number
  /** JSON, separated by commas. */
  readonly json: string
}

/** Spans of traced requests. */
export const TRACED = new ThreadStream<undefined, WrittenSpans>('traces')

export interface SpanOptions {
  /** Whether spans identify people: user and client address. */
  readonly userAttributes: boolean
  newSpanId(): string
}

const INTERNAL = 1
const SERVER = 2
const CLIENT = 3
const STATUS_ERROR = 2
/** Bit 0: sampled. Bits 8 and 9: it is known whether the parent is remote, and it is. */
const SAMPLED = 0x01
const PARENT_IS_LOCAL = 0x100
const PARENT_IS_REMOTE = 0x300
/** Others become `_OTHER`, so that clients can't invent values (semconv, http.request.method). */
const METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'CONNECT',
  'TRACE',
])

/** Maximum length of texts chosen by clients. */
const MAX_TEXT = 256

const METHOD = `"attributes":[${firstText('http.request.method')}`
const METHOD_ORIGINAL = nextText('http.request.method_original')
const SCHEME_AND_PATH = `${nextText('url.scheme')}"https"${nextText('url.path')}`
const SERVER_ADDRESS = nextText('server.address')
const PROTOCOL = `${nextText('network.protocol.name')}"http"${nextText('network.protocol.version')}`
const USER_AGENT = nextText('user_agent.original')
const AUDIT_ID = nextText('audit-id')
const CLUSTER = nextText('k8s.cluster.name')
const VERB = nextText('k8s.verb')
const LONG_RUNNING = nextBool('k8s.long_running')
const REQUEST_SIZE = nextInteger('http.request.body.size')
const ATTEMPTS = nextInteger('portcullis.attempts')
const STATUS_CODE = nextInteger('http.response.status_code')
const RESPONSE_SIZE = nextInteger('http.response.body.size')
const ROUTE = nextText('http.route')
const API_GROUP = nextText('k8s.api_group')
const RESOURCE = nextText('k8s.resource')
const SUBRESOURCE = nextText('k8s.subresource')
const NAMESPACE = nextText('k8s.namespace.name')
const ERROR_TYPE = nextText('error.type')
const USER_NAME = nextText('user.name')
const CLIENT_ADDRESS = nextText('client.address')
const IMPERSONATOR = nextText('portcullis.impersonator')
const POLICY = `"attributes":[${firstInteger('portcullis.policy')}`
const RULE = nextInteger('portcullis.rule')
const FLOW_CONTROL = nextText('portcullis.flow_control')
const SHADOW = nextText('portcullis.shadow')
const ENDPOINT = `"attributes":[${firstText('portcullis.endpoint')}`
const SERVER_PORT = nextInteger('server.port')
const FULL_URL = nextText('url.full')
const RESENDS = nextInteger('http.request.resend_count')
const REFUSAL_REASON = `"attributes":[${firstText('portcullis.refusal.reason')}`
const REFUSAL_RULE = nextText('portcullis.refusal.rule')
/** After the last attribute of a span, or of an event. */
const END = '}}]'
const NO_EVENTS = '}}],"events":[],"status":'
const NO_ATTRIBUTES = '"attributes":[],"events":[],"status":'

const unixNanos = new UnixNanos()

/** A request, and what several of its spans share. */
interface Traced {
  readonly record: RequestRecord
  readonly trace: RequestTrace
  readonly endMs: number
  readonly options: SpanOptions
  /** Without the query: an exec's command, or the query to a proxied service, may be secret. */
  readonly path: string
  /** Span name: an unknown method would let clients choose it. */
  readonly method: string
  /** Attributes of the method, which others are appended to. */
  readonly methodAttributes: string
  /** Prefix of a child span, up to the text of its identifier, and from there to its name. */
  readonly beforeId: string
  readonly afterId: string
}

/** The server span, plus one per step that was reached. @param endMs monotonic */
export function writeSpans(
  record: RequestRecord,
  trace: RequestTrace,
  endMs: number,
  options: SpanOptions,
): WrittenSpans {
  const { authenticatedMs, identifiedMs, admittedMs, attempts } = trace
  const { method } = record
  const known = METHODS.has(method)
  const request: Traced = {
    record,
    trace,
    endMs,
    options,
    path: pathOf(cut(record.target)),
    method: known ? method : 'HTTP',
    methodAttributes: known ? `${METHOD}"${method}"` : `${METHOD}"_OTHER"${METHOD_ORIGINAL}${quote(cut(method))}`,
    beforeId: `,{"traceId":"${trace.traceId}","spanId":"`,
    afterId: `","parentSpanId":"${trace.spanId}","flags":${SAMPLED | PARENT_IS_LOCAL},"name":"`,
  }
  const authentication = step(request, 'authenticate', record.startMs, authenticatedMs)
  let json = `${serverSpan(request)}${authentication}${NO_ATTRIBUTES}${stepStatus(request, authenticatedMs)}}`
  let count = 2
  if (authenticatedMs >= 0 && record.impersonator !== '') {
    json += `${step(request, 'impersonate', authenticatedMs, identifiedMs)}${NO_ATTRIBUTES}${stepStatus(request, identifiedMs)}}`
    count++
  }
  if (identifiedMs >= 0) {
    const attributes = admissionAttributes(record)
    json += `${step(request, 'admit', identifiedMs, admittedMs)}${attributes}${NO_EVENTS}${stepStatus(request, admittedMs)}}`
    count++
  }
  for (const [i, attempt] of attempts.entries()) {
    json += attemptSpans(request, attempt, i)
    count += 2
  }
  return { count, json: inOnePiece(json) }
}

const scratch = Buffer.allocUnsafeSlow(1)

/**
 * The same text. V8 keeps one that was appended to as a tree of its pieces, until its letters are read; while it waits for its batch, each collection of the
 * young generation would copy them one by one.
 */
function inOnePiece(text: string): string {
  scratch.write(text, 0, 1, 'latin1')
  return text
}

function cut(text: string): string {
  return text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) : text
}

/** A child of the server span, up to its times. */
function step(request: Traced, name: string, fromMs: number, toMs: number): string {
  return child(request, request.options.newSpanId(), name, INTERNAL, fromMs, toMs)
}

function child(request: Traced, spanId: string, name: string, kind: number, fromMs: number, toMs: number): string {
  const { beforeId, afterId, endMs } = request
  const times = timesOf(request.record, fromMs, toMs < fromMs ? endMs : toMs)
  return `${beforeId}${spanId}${afterId}${name}","kind":${kind},${times}`
}

function timesOf(record: RequestRecord, fromMs: number, toMs: number): string {
  return `"startTimeUnixNano":${nanosOf(record, fromMs)},"endTimeUnixNano":${nanosOf(record, toMs)},`
}

/** Converts the monotonic clock to Unix nanoseconds, by a moment at which both were read. */
function nanosOf({ startMs, startWallMs }: RequestRecord, ms: number): string {
  return unixNanos.text(Math.round((startWallMs + (ms - startMs)) * 1000))
}

/** The request was refused in the step that did not finish. */
function stepStatus({ record: { refusal } }: Traced, doneMs: number): string {
  return doneMs < 0 && refusal !== '' ? errorStatus(cut(refusal)) : '{}'
}

function errorStatus(message: string): string {
  return `{"code":${STATUS_ERROR},"message":${quote(message)}}`
}

function serverSpan(request: Traced): string {
  const { record, trace, method, endMs } = request
  const route = routeOf(request)
  const refusal = cut(record.refusal)
  const error = refusal !== '' ? refusal : record.aborted === '' ? '' : `aborted_by_${record.aborted}`
  const parent = trace.parentId === '' ? '' : `"parentSpanId":"${trace.parentId}",`
  const state = trace.traceState === '' ? '' : `"traceState":${quote(trace.traceState)},`
  const flags = SAMPLED | (trace.parentId === '' ? PARENT_IS_LOCAL : PARENT_IS_REMOTE)
  const name = route === '' ? `"${method}"` : quote(`${method} ${route}`)
  // A client error is not an error of the server (semconv, HTTP server status).
  const status = record.code >= 500 || record.aborted === 'upstream' ? errorStatus(error) : '{}'
  return `{"traceId":"${trace.traceId}","spanId":"${trace.spanId}",${parent}${state}"flags":${flags},"name":${name},"kind":${SERVER},${timesOf(
    record,
    record.startMs,
    endMs,
  )}${serverAttributes(request, route, error)}${END},"events":[${eventsOf(request)}],"status":${status}}`
}

function eventsOf({ record, trace: { attempts }, endMs }: Traced): string {
  let events = ''
  for (let i = 0; i + 1 < attempts.length; i++) {
    const attempt = attempts[i]
    if (attempt === undefined) continue
    const { error, endpoint, endMs: atMs } = attempt
    const attributes = `${ENDPOINT}${quote(endpoint)}${ERROR_TYPE}${quote(error === '' ? 'retried' : error)}`
    events += `${events === '' ? '' : ','}${event(record, 'retry', atMs < 0 ? endMs : atMs, attributes)}`
  }
  if (record.refusal === '') return events
  const attributes = `${REFUSAL_REASON}${quote(cut(record.refusal))}${REFUSAL_RULE}${quote(cut(record.refusalRule))}`
  return `${events}${events === '' ? '' : ','}${event(record, 'refused', endMs, attributes)}`
}

function event(record: RequestRecord, name: string, atMs: number, attributes: string): string {
  return `{"timeUnixNano":${nanosOf(record, atMs)},"name":"${name}",${attributes}${END}}`
}

function serverAttributes(
  { record, trace, path, methodAttributes, options }: Traced,
  route: string,
  error: string,
): string {
  const { code, longRunning } = record
  let json = methodAttributes
  json += SCHEME_AND_PATH + quote(path)
  json += SERVER_ADDRESS + quote(withoutPort(cut(record.host)))
  json += PROTOCOL + (record.protocol === 'h2' ? '"2"' : '"1.1"')
  json += USER_AGENT + quote(cut(record.userAgent))
  json += AUDIT_ID + quote(cut(record.auditId))
  json += CLUSTER + quote(cut(record.cluster))
  json += VERB + quote(cut(record.verb))
  json += LONG_RUNNING + (longRunning ? 'true' : 'false')
  json += REQUEST_SIZE + quoteNumber(record.requestBytes)
  json += ATTEMPTS + quoteNumber(trace.attempts.length)
  if (code !== 0) json += STATUS_CODE + quoteNumber(code)
  if (!longRunning) json += RESPONSE_SIZE + quoteNumber(record.responseBytes)
  if (route !== '') json += ROUTE + quote(route)
  if (record.isResourceRequest) {
    json += API_GROUP + quote(cut(record.apiGroup)) + RESOURCE + quote(cut(record.resource))
    if (record.subresource !== '') json += SUBRESOURCE + quote(cut(record.subresource))
    if (record.namespace !== '') json += NAMESPACE + quote(cut(record.namespace))
  }
  if (error !== '' || code >= 500) json += ERROR_TYPE + quote(error === '' ? String(code) : error)
  if (!options.userAttributes) return json
  json += USER_NAME + quote(cut(record.user)) + CLIENT_ADDRESS + quote(cut(record.remoteAddress))
  if (record.impersonator !== '') json += IMPERSONATOR + quote(cut(record.impersonator))
  return json
}

function admissionAttributes({ policy, rule, flowControl, shadow }: RequestRecord): string {
  let json = POLICY + quoteNumber(policy) + RULE + quoteNumber(rule)
  if (flowControl !== '') json += FLOW_CONTROL + quote(cut(flowControl))
  const shadowText = shadow.length === 0 ? '' : cut(shadow.join(' '))
  if (shadowText !== '') json += SHADOW + quote(shadowText)
  return json
}

/** Spans for choosing an endpoint and for sending to it. */
function attemptSpans(request: Traced, attempt: TraceAttempt, resends: number): string {
  const { spanId, endpoint, pickMs, sentMs, endMs, code, error } = attempt
  const status = error === '' && code < 400 ? '{}' : errorStatus(error)
  const pick = `${step(request, 'pick', pickMs, sentMs)}${ENDPOINT}${quote(endpoint)}${NO_EVENTS}{}}`
  const sending = child(request, spanId, request.method, CLIENT, sentMs, endMs)
  return `${pick}${sending}${attemptAttributes(request, attempt, resends)}${NO_EVENTS}${status}}`
}

function attemptAttributes(
  { path, methodAttributes }: Traced,
  { endpoint, code, error }: TraceAttempt,
  resends: number,
): string {
  const [scheme = '', rest = ''] = endpoint.split('://')
  const port = /:(\d+)$/.exec(rest)?.[1]
  let json = methodAttributes
  json += SERVER_ADDRESS + quote(withoutPort(rest))
  json += SERVER_PORT + quoteNumber(Number(port ?? (scheme === 'http' ? 80 : 443)))
  json += FULL_URL + quote(endpoint + path)
  if (resends > 0) json += RESENDS + quoteNumber(resends)
  if (code !== 0) json += STATUS_CODE + quoteNumber(code)
  if (error !== '' || code >= 400) json += ERROR_TYPE + quote(error === '' ? String(code) : error)
  return json
}

function withoutPort(address: string): string {
  return address.replace(/:\d+$/, '')
}

function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query < 0 ? target : target.slice(0, query)
}

/**
 * The path with placeholders. Low cardinality: '' for non-resource requests, and for unauthenticated ones and 404s, whose resource a client
 * may have invented.
 */
function routeOf({ record, trace }: Traced): string {
  if (!record.isResourceRequest || trace.authenticatedMs < 0 || record.code === 404) return ''
  const { resource, namespace, name } = record
  const [apiGroup, subresource] = [cut(record.apiGroup), cut(record.subresource)]
  const prefix = apiGroup === '' ? '/api/{version}' : `/apis/${apiGroup}/{version}`
  const inNamespace = namespace === '' || resource === 'namespaces' ? '' : '/namespaces/{namespace}'
  return `${prefix}${inNamespace}/${cut(resource)}${name === '' ? '' : '/{name}'}${subresource === '' ? '' : `/${subresource}`}`
}
