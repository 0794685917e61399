// Spans as objects: what the gateway writes as text has to parse to exactly this. Slow, and easy to read.

import type { RequestRecord } from '../../src/gateway/api/request-record.ts'
import type { RequestTrace, TraceAttempt } from '../../src/gateway/api/request-trace.ts'
import type { SpanOptions } from '../../src/traces/core/otlp.ts'
import type { OtlpAttribute, OtlpSpan } from '../harness/servers/otlp-receiver.ts'

/** Characters of what a client has chosen. */
const MAX_TEXT = 256

type ReadTrace = ReturnType<typeof cutTexts>

function cutTexts(record: RequestRecord, trace: RequestTrace, endMs: number) {
  const cut = (value: string): string => value.slice(0, MAX_TEXT)
  return {
    texts: {
      auditId: cut(record.auditId),
      method: cut(record.method),
      target: cut(record.target),
      host: cut(record.host),
      protocol: cut(record.protocol),
      remoteAddress: cut(record.remoteAddress),
      userAgent: cut(record.userAgent),
      cluster: cut(record.cluster),
      verb: cut(record.verb),
      apiGroup: cut(record.apiGroup),
      resource: cut(record.resource),
      subresource: cut(record.subresource),
      namespace: cut(record.namespace),
      name: cut(record.name),
      user: cut(record.user),
      impersonator: cut(record.impersonator),
      flowControl: cut(record.flowControl),
      refusal: cut(record.refusal),
      refusalRule: cut(record.refusalRule),
      aborted: cut(record.aborted),
    },
    numbers: record,
    isResourceRequest: record.isResourceRequest,
    longRunning: record.longRunning,
    shadow: cut(record.shadow.join(' ')),
    trace,
    authenticatedMs: trace.authenticatedMs,
    identifiedMs: trace.identifiedMs,
    admittedMs: trace.admittedMs,
    endMs,
    attempts: trace.attempts,
  }
}

const INTERNAL = 1
const SERVER = 2
const CLIENT = 3
const STATUS_ERROR = 2
/** Bit 0: sampled. Bits 8 and 9: whether the parent is remote is known, and it is. */
const SAMPLED = 0x01
const PARENT_IS_LOCAL = 0x100
const PARENT_IS_REMOTE = 0x300
/** Others are `_OTHER`, so that clients cannot invent values (semconv, http.request.method). */
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

/** The server span, and one for each step that was reached. */
export function spanObjects(
  record: RequestRecord,
  requestTrace: RequestTrace,
  endMsOfAll: number,
  options: SpanOptions,
): OtlpSpan[] {
  const request = cutTexts(record, requestTrace, endMsOfAll)
  const { numbers, trace, authenticatedMs, identifiedMs, admittedMs, endMs, attempts } = request
  const nanos = nanosOf(numbers.startMs, numbers.startWallMs)
  const child = (name: string, kind: number, fromMs: number, toMs: number, more: Partial<OtlpSpan> = {}): OtlpSpan => ({
    traceId: trace.traceId,
    spanId: more.spanId ?? options.newSpanId(),
    parentSpanId: trace.spanId,
    flags: SAMPLED | PARENT_IS_LOCAL,
    name,
    kind,
    startTimeUnixNano: nanos(fromMs),
    endTimeUnixNano: nanos(toMs < fromMs ? endMs : toMs),
    attributes: [],
    events: [],
    status: {},
    ...more,
  })
  const spans = [serverSpan(request, nanos, options)]
  spans.push(
    child('authenticate', INTERNAL, numbers.startMs, authenticatedMs, errorWhere(authenticatedMs < 0, request)),
  )
  if (authenticatedMs >= 0 && request.texts.impersonator !== '')
    spans.push(child('impersonate', INTERNAL, authenticatedMs, identifiedMs, errorWhere(identifiedMs < 0, request)))
  if (identifiedMs >= 0) {
    const more = { attributes: admissionAttributes(request), ...errorWhere(admittedMs < 0, request) }
    spans.push(child('admit', INTERNAL, identifiedMs, admittedMs, more))
  }
  for (const [i, attempt] of attempts.entries()) {
    const { spanId, pickMs, sentMs, endMs: doneMs } = attempt
    spans.push(child('pick', INTERNAL, pickMs, sentMs, { attributes: [text('portcullis.endpoint', attempt.endpoint)] }))
    const more = {
      spanId,
      attributes: attemptAttributes(request, attempt, i),
      status: statusOf(attempt.code, attempt.error, 400),
    }
    spans.push(child(methodOf(request), CLIENT, sentMs, doneMs, more))
  }
  return spans
}

/** A step that was not finished is where the request was refused. */
function errorWhere(unfinished: boolean, { texts: { refusal } }: ReadTrace): Pick<OtlpSpan, 'status'> {
  return { status: unfinished && refusal !== '' ? { code: STATUS_ERROR, message: refusal } : {} }
}

function serverSpan(request: ReadTrace, nanos: (ms: number) => string, options: SpanOptions): OtlpSpan {
  const { texts, numbers, trace, endMs, attempts } = request
  const { refusal, refusalRule, aborted } = texts
  const method = methodOf(request)
  const route = routeOf(request)
  const events: OtlpSpan['events'][number][] = []
  for (const { error, endMs: atMs, endpoint } of attempts.slice(0, -1)) {
    const attributes = [text('portcullis.endpoint', endpoint), text('error.type', error === '' ? 'retried' : error)]
    events.push({ timeUnixNano: nanos(atMs < 0 ? endMs : atMs), name: 'retry', attributes })
  }
  if (refusal !== '') {
    const attributes = [text('portcullis.refusal.reason', refusal), text('portcullis.refusal.rule', refusalRule)]
    events.push({ timeUnixNano: nanos(endMs), name: 'refused', attributes })
  }
  const error = refusal !== '' ? refusal : aborted === '' ? '' : `aborted_by_${aborted}`
  return {
    traceId: trace.traceId,
    spanId: trace.spanId,
    ...(trace.parentId !== '' && { parentSpanId: trace.parentId }),
    ...(trace.traceState !== '' && { traceState: trace.traceState }),
    flags: SAMPLED | (trace.parentId === '' ? PARENT_IS_LOCAL : PARENT_IS_REMOTE),
    name: route === '' ? method : `${method} ${route}`,
    kind: SERVER,
    startTimeUnixNano: nanos(numbers.startMs),
    endTimeUnixNano: nanos(endMs),
    attributes: serverAttributes(request, route, error, options),
    events,
    // A client's error is none of the server's (semconv, HTTP server status).
    status: numbers.code >= 500 || aborted === 'upstream' ? { code: STATUS_ERROR, message: error } : {},
  }
}

function serverAttributes(request: ReadTrace, route: string, error: string, options: SpanOptions): OtlpAttribute[] {
  const { texts, numbers, isResourceRequest, longRunning, attempts } = request
  const path = pathOf(texts.target)
  const attributes = [
    ...methodAttributes(texts.method),
    text('url.scheme', 'https'),
    text('url.path', path),
    text('server.address', texts.host.replace(/:\d+$/, '')),
    text('network.protocol.name', 'http'),
    text('network.protocol.version', texts.protocol === 'h2' ? '2' : '1.1'),
    text('user_agent.original', texts.userAgent),
    text('audit-id', texts.auditId),
    text('k8s.cluster.name', texts.cluster),
    text('k8s.verb', texts.verb),
    bool('k8s.long_running', longRunning),
    integer('http.request.body.size', numbers.requestBytes),
    integer('portcullis.attempts', attempts.length),
  ]
  if (numbers.code !== 0) attributes.push(integer('http.response.status_code', numbers.code))
  if (!longRunning) attributes.push(integer('http.response.body.size', numbers.responseBytes))
  if (route !== '') attributes.push(text('http.route', route))
  if (isResourceRequest) {
    attributes.push(text('k8s.api_group', texts.apiGroup), text('k8s.resource', texts.resource))
    if (texts.subresource !== '') attributes.push(text('k8s.subresource', texts.subresource))
    if (texts.namespace !== '') attributes.push(text('k8s.namespace.name', texts.namespace))
  }
  if (error !== '' || numbers.code >= 500)
    attributes.push(text('error.type', error === '' ? String(numbers.code) : error))
  if (!options.userAttributes) return attributes
  attributes.push(text('user.name', texts.user), text('client.address', texts.remoteAddress))
  if (texts.impersonator !== '') attributes.push(text('portcullis.impersonator', texts.impersonator))
  return attributes
}

function admissionAttributes({ texts, numbers, shadow }: ReadTrace): OtlpAttribute[] {
  const attributes = [integer('portcullis.policy', numbers.policy), integer('portcullis.rule', numbers.rule)]
  if (texts.flowControl !== '') attributes.push(text('portcullis.flow_control', texts.flowControl))
  if (shadow !== '') attributes.push(text('portcullis.shadow', shadow))
  return attributes
}

function attemptAttributes(
  { texts }: ReadTrace,
  { endpoint, code, error }: TraceAttempt,
  resends: number,
): OtlpAttribute[] {
  const [scheme = '', rest = ''] = endpoint.split('://')
  const port = /:(\d+)$/.exec(rest)?.[1]
  const attributes = [
    ...methodAttributes(texts.method),
    text('server.address', rest.replace(/:\d+$/, '')),
    integer('server.port', Number(port ?? (scheme === 'http' ? 80 : 443))),
    text('url.full', `${endpoint}${pathOf(texts.target)}`),
  ]
  if (resends > 0) attributes.push(integer('http.request.resend_count', resends))
  if (code !== 0) attributes.push(integer('http.response.status_code', code))
  if (error !== '' || code >= 400) attributes.push(text('error.type', error === '' ? String(code) : error))
  return attributes
}

function statusOf(code: number, error: string, leastCode: number): OtlpSpan['status'] {
  return error === '' && code < leastCode ? {} : { code: STATUS_ERROR, message: error }
}

function methodOf({ texts: { method } }: ReadTrace): string {
  // Another method would be a name that clients choose.
  return METHODS.has(method) ? method : 'HTTP'
}

function methodAttributes(method: string): OtlpAttribute[] {
  if (METHODS.has(method)) return [text('http.request.method', method)]
  return [text('http.request.method', '_OTHER'), text('http.request.method_original', method)]
}

/** Without the query: the command of an exec, and what a proxied service is asked, may be a secret. */
function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query < 0 ? target : target.slice(0, query)
}

/**
 * The path with placeholders. Few different ones: '' of what is not a resource, and where no answer has said that there is such a resource,
 * because a client may have invented it.
 */
function routeOf({ texts, numbers, isResourceRequest, authenticatedMs }: ReadTrace): string {
  if (!isResourceRequest || authenticatedMs < 0 || numbers.code === 404) return ''
  const { apiGroup, resource, subresource, namespace, name } = texts
  const prefix = apiGroup === '' ? '/api/{version}' : `/apis/${apiGroup}/{version}`
  const inNamespace = namespace === '' || resource === 'namespaces' ? '' : '/namespaces/{namespace}'
  return `${prefix}${inNamespace}/${resource}${name === '' ? '' : '/{name}'}${subresource === '' ? '' : `/${subresource}`}`
}

/** From the monotonic clock to Unix nanoseconds, by the moment at which both were read. */
function nanosOf(startMs: number, startWallMs: number): (ms: number) => string {
  return (ms) => `${Math.round((startWallMs + (ms - startMs)) * 1000)}000`
}

function text(key: string, value: string): OtlpAttribute {
  return { key, value: { stringValue: value } }
}

function integer(key: string, value: number): OtlpAttribute {
  return { key, value: { intValue: String(value) } }
}

function bool(key: string, value: boolean): OtlpAttribute {
  return { key, value: { boolValue: value } }
}
