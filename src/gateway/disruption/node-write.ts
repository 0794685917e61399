// Whether a write of a node adds a NoExecute taint. Formats and merges are upstream's to read: the write is tried as a dry run, as
// the caller, and its outcome is compared with the node as it is.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import { addedNoExecute, mayAddNoExecute } from '../../core/policy/node-taints.ts'
import { isRefusal, type Refusal, refuse } from '../../core/refusal/refusal.ts'
import { headerValue } from '../../core/request/hop-headers.ts'
import { CallLimitError, type KubeAnswer, KubeCallError } from '../../io/upstream/kube-call.ts'
import { type CallAsGateway, callAsGateway } from '../calls/call-as-gateway.ts'
import { callerFields } from '../calls/caller-fields.ts'
import type { Decision } from '../exchange/decision.ts'
import { readBody } from '../exchange/read-body.ts'
import { reviewRight } from '../protect/access.ts'
import { countUnchecked } from './unchecked.ts'

/** kube-apiserver takes no larger one (MaxRequestBodyBytes). */
const MAX_BODY_BYTES = 3 * 1024 * 1024
/** etcd takes 1.5 MiB of an object, of which JSON may make six times as much. */
const MAX_NODE_BYTES = 16 * 1024 * 1024
/** Of each of the two calls. */
const TIMEOUT_MS = 10_000

/**
 * Key and value of the taint that it adds; undefined = it adds none, or nobody could say: then it is upstream's to refuse.
 * @returns a refusal of who may not write nodes, or has to come again
 */
export async function addedTaint(decision: Decision): Promise<string | Refusal | undefined> {
  const { exchange, live, caller, info } = decision
  if (exchange.upgrade !== undefined) return refuse('bad-request', 'a write of a node cannot be upgraded')
  const right = await reviewRight(exchange, live, caller, info, 'write it')
  if (exchange.gone || exchange.phase === 'over') return undefined
  if (right.kind === 'denied') return right.refusal
  if (right.kind === 'unknown') return countUnchecked(decision, right.message)
  const body = await readBody(exchange, MAX_BODY_BYTES, tooLarge)
  if (isRefusal(body)) return body
  if (exchange.gone) return undefined
  const contentType = headerValue(exchange.head.fields, 'content-type') ?? ''
  if (!mayAddNoExecute(contentType, body)) return undefined
  try {
    return await tryWrite(decision, contentType, body)
  } catch (error) {
    if (error instanceof CallLimitError) {
      const { message, retryAfterSeconds } = error
      return refuse('too-many-reviews', message, { retryAfterSeconds, rule: 'node-read' })
    }
    if (error instanceof KubeCallError || error instanceof SyntaxError) return countUnchecked(decision, error.message)
    throw error
  }
}

async function tryWrite(decision: Decision, contentType: string, body: Buffer): Promise<string | undefined> {
  const { exchange, info } = decision
  const { target, record } = exchange
  const tried = await callUpstream(decision, {
    method: record.method === 'PUT' ? 'PUT' : 'PATCH',
    path: `${target}${target.includes('?') ? '&' : '?'}dryRun=All`,
    body,
    contentType: contentType === '' ? 'application/json' : contentType,
  })
  const after = objectOf(tried)
  // It says the same of the write itself: a conflict, an error. Or a webhook has side effects, and is asked about no dry run.
  if (after === undefined) return countUnchecked(decision, `its dry run was answered with ${tried.status}`)
  const path = `/api/v1/nodes/${encodeURIComponent(info.name)}`
  const before = objectOf(await callUpstream(decision, { method: 'GET', path }))
  // Who may write a node but not read it: what it has already does not count.
  return addedNoExecute(before ?? {}, after)
}

/** As the caller, in its turn. */
function callUpstream(
  { exchange, live, caller, cluster }: Decision,
  call: Pick<CallAsGateway, 'method' | 'path' | 'body' | 'contentType'>,
): Promise<KubeAnswer> {
  return callAsGateway(exchange.gw, live, {
    kind: 'node-read',
    charge: exchange.charge,
    credentials: caller.credentials(cluster.client),
    fields: callerFields(exchange.head),
    timeoutMs: TIMEOUT_MS,
    maxAnswerBytes: MAX_NODE_BYTES,
    ...call,
  })
}

/** @throws {SyntaxError} */
function objectOf({ status, body }: KubeAnswer): JsonObject | undefined {
  if (status !== 200 && status !== 201) return undefined
  const object: unknown = JSON.parse(body)
  return isRecord(object) ? object : undefined
}

/** As kube-apiserver says it. */
function tooLarge(): Refusal {
  return refuse('body-too-large', `Request entity too large: limit is ${MAX_BODY_BYTES}`)
}
