// What a write does to spec.replicas: the body says it, or upstream by a dry run. Asked by every filter that cares, found out once.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import { queryOf, queryValues } from '../../core/protection/requests/deletion-request-query.ts'
import { isRefusal, type Refusal, refuse } from '../../core/refusal/refusal.ts'
import { headerValue } from '../../core/request/hop-headers.ts'
import { readReplicas } from '../../core/scale/scale-write/read-replicas.ts'
import {
  readsObject,
  replicasOf,
  type ScaleChange,
  type UnknownReason,
} from '../../core/scale/scale-write/scale-change.ts'
import { type ScaleTarget, scalePath, scaleTargetOf } from '../../core/scale/scale-write/scale-target.ts'
import { CallLimitError, type KubeAnswer, KubeCallError } from '../../io/upstream/kube-call.ts'
import { type CallAsGateway, callAsGateway, refusalOf } from '../calls/call-as-gateway.ts'
import { callerFields } from '../calls/caller-fields.ts'
import type { Decision } from '../exchange/decision.ts'
import { readBody } from '../exchange/read-body.ts'
import { reviewRight } from '../protect/access.ts'

/** kube-apiserver takes no larger one (MaxRequestBodyBytes). */
const MAX_BODY_BYTES = 3 * 1024 * 1024
/** etcd takes 1.5 MiB of an object, of which JSON may make six times as much. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024
/** Of each call upstream. */
const TIMEOUT_MS = 10_000
const DRY_RUN: ReadonlySet<string> = new Set(['dryRun'])

/**
 * Who may not write it is refused, before its body is read. Asked by several filters, it is found out once.
 * @returns undefined = the request leaves spec.replicas as it is, or is a dry run
 */
export function scaleChange(decision: Decision): Promise<ScaleChange | Refusal | undefined> {
  decision.scaleChange ??= find(decision)
  return decision.scaleChange
}

async function find(decision: Decision): Promise<ScaleChange | Refusal | undefined> {
  const { exchange, live, caller, info } = decision
  const target = scaleTargetOf(info)
  // Any value is one, or is refused upstream.
  if (target === undefined || queryValues(queryOf(exchange.target), DRY_RUN).size > 0) return undefined
  // An upgrade joins two sockets, and what upstream makes of the request could not be seen.
  if (exchange.upgrade !== undefined) return refuse('bad-request', 'a write of replicas cannot be upgraded')
  const right = await reviewRight(exchange, live, caller, info, 'scale it')
  if (exchange.gone || exchange.phase === 'over') return undefined
  if (right.kind === 'denied') return right.refusal
  if (right.kind === 'unknown') return unknown(target, 'rights', right.message)
  const body = await readBody(exchange, MAX_BODY_BYTES, tooLarge)
  if (isRefusal(body)) return body
  if (exchange.gone) return undefined
  const contentType = headerValue(exchange.head.fields, 'content-type') ?? ''
  const verb = info.verb === 'update' ? 'update' : 'patch'
  const written = readReplicas({ target, verb, contentType, body })
  if (written.kind === 'unchanged') return undefined
  if (written.kind === 'unreadable') return unknown(target, 'unreadable', written.why)
  try {
    const to = written.kind === 'replicas' ? written.value : await askUpstream(decision, target, contentType, body)
    return await compare(decision, target, to)
  } catch (error) {
    if (error instanceof CallLimitError) return limited(target, error)
    if (error instanceof KubeCallError || error instanceof SyntaxError)
      return unknown(target, 'not-read', error.message)
    throw error
  }
}

function unknown(target: ScaleTarget, unknownReason: UnknownReason, why: string): ScaleChange {
  return { target, from: undefined, to: undefined, current: undefined, unknown: why, unknownReason }
}

/** No policy lets it pass: a client could bring it about. */
function limited({ resource, name }: ScaleTarget, { message, retryAfterSeconds }: CallLimitError): Refusal {
  const object = { kind: resource, name }
  return refuse('too-many-reviews', message, { retryAfterSeconds, rule: 'scale-read', object })
}

/** As kube-apiserver says it. */
function tooLarge(): Refusal {
  return refuse('body-too-large', `Request entity too large: limit is ${MAX_BODY_BYTES}`)
}

async function compare(
  decision: Decision,
  target: ScaleTarget,
  to: number | UnknownReplicas,
): Promise<ScaleChange | undefined> {
  if (typeof to !== 'number') return unknown(target, 'dry-run', to.why)
  const isObject = readsObject(target)
  const path = scalePath(target, isObject ? '' : '/scale')
  const answer = await readCurrent(decision, path)
  if (answer.status === 404) return { target, from: undefined, to, current: undefined }
  if (answer.status !== 200) {
    return { ...unknown(target, 'not-read', `what is scaled cannot be read: ${refusalOf(answer)}`), to }
  }
  const current = objectOf(answer)
  const from = current === undefined ? undefined : replicasOf(current, { isScale: !isObject })
  if (from === to) return undefined
  const change: ScaleChange = { target, from, to, current }
  if (from !== undefined) return change
  return { ...change, unknown: 'what is scaled says no spec.replicas', unknownReason: 'not-read' }
}

/**
 * As the gateway; where its rights do not reach, as the caller, who may write it and hardly ever may not read it. Of two that are
 * forbidden the answer is the gateway's, which says what to do about it.
 */
async function readCurrent(decision: Decision, path: string): Promise<KubeAnswer> {
  const { exchange, caller, cluster } = decision
  const own = await callUpstream(decision, { method: 'GET', path })
  if (own.status !== 403) return own
  const credentials = caller.credentials(cluster.client)
  const answer = await callUpstream(decision, { method: 'GET', path, credentials, fields: callerFields(exchange.head) })
  return answer.status === 403 ? own : answer
}

interface UnknownReplicas {
  readonly why: string
}

/** The same request as a dry run, as the caller: nothing but upstream knows all formats, and all that is there already. */
async function askUpstream(
  decision: Decision,
  target: ScaleTarget,
  contentType: string,
  body: Buffer,
): Promise<number | UnknownReplicas> {
  const { exchange, caller, cluster } = decision
  const { head, target: asked, record } = exchange
  const answer = await callUpstream(decision, {
    method: record.method === 'PUT' ? 'PUT' : 'PATCH',
    path: `${asked}${asked.includes('?') ? '&' : '?'}dryRun=All`,
    credentials: caller.credentials(cluster.client),
    fields: callerFields(head),
    body,
    contentType: contentType === '' ? 'application/json' : contentType,
  })
  // A webhook that does not say that it has no side effects is one reason (400).
  if (answer.status !== 200 && answer.status !== 201) return { why: `its dry run was answered with ${answer.status}` }
  const object = objectOf(answer)
  return (object && replicasOf(object, target)) ?? { why: 'the answer to its dry run says no spec.replicas' }
}

/** In the turn of whoever wants to scale. @throws {KubeCallError} */
export function callUpstream(
  { exchange, live }: Decision,
  call: Pick<CallAsGateway, 'method' | 'path' | 'credentials' | 'fields' | 'body' | 'contentType'>,
): Promise<KubeAnswer> {
  const limits = { timeoutMs: TIMEOUT_MS, maxAnswerBytes: MAX_ANSWER_BYTES }
  return callAsGateway(exchange.gw, live, { kind: 'scale-read', charge: exchange.charge, ...limits, ...call })
}

/** @throws {SyntaxError} */
function objectOf({ body }: KubeAnswer): JsonObject | undefined {
  const object: unknown = JSON.parse(body)
  return isRecord(object) ? object : undefined
}
