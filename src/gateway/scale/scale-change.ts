// What a write does to spec.replicas: the body says it, or upstream by a dry run. Asked by every filter that cares, found out once.

import { CallLimitError, KubeCallError } from '../../core/answers/call-errors.ts'
import { queryOf, queryValues } from '../../core/protection/requests/deletion-request-query.ts'
import { isRefusal, type Refusal, refuse } from '../../core/refusal/refusal.ts'
import { headerValue } from '../../core/request/hop-headers.ts'
import { readReplicas } from '../../core/scale/scale-write/read-replicas.ts'
import {
  type RefusedWrite,
  readsObject,
  replicasOf,
  type ScaleChange,
  type UnknownReason,
} from '../../core/scale/scale-write/scale-change.ts'
import { type ScaleTarget, scalePath, scaleTargetOf } from '../../core/scale/scale-write/scale-target.ts'
import type { KubeAnswer } from '../../io/upstream/kube-call.ts'
import { reviewRight } from '../calls/access.ts'
import { refusalOf } from '../calls/call-as-gateway.ts'
import { asCaller, callUpstream, MAX_WRITE_BYTES, objectOf, tryWrite, writeTooLarge } from '../calls/try-write.ts'
import type { Decision } from '../exchange/decision.ts'
import { readBody } from '../exchange/read-body.ts'

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
  const body = await readBody(exchange, MAX_WRITE_BYTES, writeTooLarge)
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

async function compare(
  decision: Decision,
  target: ScaleTarget,
  to: number | UnknownReplicas,
): Promise<ScaleChange | undefined> {
  if (typeof to !== 'number') {
    const { why, answered } = to
    return { ...unknown(target, 'dry-run', why), ...(answered !== undefined && { answered }) }
  }
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
  const own = await callUpstream(decision, 'scale-read', { method: 'GET', path })
  if (own.status !== 403) return own
  const answer = await callUpstream(decision, 'scale-read', { method: 'GET', path, ...asCaller(decision) })
  return answer.status === 403 ? own : answer
}

interface UnknownReplicas {
  readonly why: string
  /** Upstream's answer, where it refuses the write. */
  readonly answered?: RefusedWrite
}

/** The same request as a dry run: what its body does not say for certain, upstream does. */
async function askUpstream(
  decision: Decision,
  target: ScaleTarget,
  contentType: string,
  body: Buffer,
): Promise<number | UnknownReplicas> {
  const tried = await tryWrite(decision, 'scale-read', contentType, body)
  switch (tried.kind) {
    case 'object':
      return replicasOf(tried.object, target) ?? { why: 'the answer to its dry run says no spec.replicas' }
    case 'refused':
      return { why: `its dry run was answered with ${tried.status}`, answered: tried }
    case 'unknown':
      return tried
  }
}
