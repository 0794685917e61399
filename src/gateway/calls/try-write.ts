// A client's write as a dry run, as the client: nothing but upstream knows all formats, all merges, and all that is there already.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import { OBJECT } from '../../core/answers/answer-limits.ts'
import { type Refusal, refuse } from '../../core/refusal/refusal.ts'
import { decodeQueryPart } from '../../core/request/request-target.ts'
import type { RefusedWrite } from '../../core/scale/scale-write/scale-change.ts'
import type { KubeAnswer } from '../../io/upstream/kube-call.ts'
import type { OwnCall } from '../../state/clusters.ts'
import type { Decision } from '../exchange/decision.ts'
import { type CallAsGateway, callAsGateway } from './call-as-gateway.ts'
import { callerFields } from './caller-fields.ts'

/** kube-apiserver takes no larger one (MaxRequestBodyBytes). */
export const MAX_WRITE_BYTES: number = 3 * 1024 * 1024
/** Of each call. */
const TIMEOUT_MS = 10_000

export type TriedWrite =
  | { readonly kind: 'object'; readonly object: JsonObject }
  | RefusedWrite
  /** Nobody can say; why, for people. */
  | { readonly kind: 'unknown'; readonly why: string }

/**
 * @param body as the client sent it
 * @throws {KubeCallError}
 * @throws {SyntaxError}
 */
export async function tryWrite(
  decision: Decision,
  kind: OwnCall,
  contentType: string,
  body: Buffer,
): Promise<TriedWrite> {
  const { target, record } = decision.exchange
  const answer = await callUpstream(decision, kind, {
    method: record.method === 'PUT' ? 'PUT' : 'PATCH',
    path: dryRunOf(target),
    ...asCaller(decision),
    body,
    contentType: contentType === '' ? 'application/json' : contentType,
  })
  const { status } = answer
  if (status === 200 || status === 201) {
    const object = objectOf(answer)
    return object === undefined
      ? { kind: 'unknown', why: 'the answer to its dry run is not an object' }
      : { kind: 'object', object }
  }
  const knowsNoDryRun = status === 400 && NO_DRY_RUN.test(messageOf(answer))
  if (status >= 400 && status < 500 && !knowsNoDryRun) return { kind: 'refused', status, body: answer.body }
  return { kind: 'unknown', why: `its dry run was answered with ${status}` }
}

/** Of a webhook that does not say that it has no side effects (apiserver/pkg/admission/plugin/webhook/errors). */
const NO_DRY_RUN = /^admission webhook "[^"\s]+" does not support dry run$/

/** In the turn of whoever writes. @throws {KubeCallError} */
export function callUpstream(
  { exchange, live }: Decision,
  kind: OwnCall,
  call: Pick<CallAsGateway, 'method' | 'path' | 'credentials' | 'fields' | 'body' | 'contentType'> &
    Partial<Pick<CallAsGateway, 'limits'>>,
): Promise<KubeAnswer> {
  const { gw, charge } = exchange
  return callAsGateway(gw, live, { kind, charge, timeoutMs: TIMEOUT_MS, limits: OBJECT, ...call })
}

export function asCaller({ exchange, caller, cluster }: Decision): Pick<CallAsGateway, 'credentials' | 'fields'> {
  return { credentials: caller.credentials(cluster.client), fields: callerFields(exchange.head) }
}

/** @throws {SyntaxError} */
export function objectOf({ body }: KubeAnswer): JsonObject | undefined {
  const object: unknown = JSON.parse(body)
  return isRecord(object) ? object : undefined
}

/** As kube-apiserver says it. */
export function writeTooLarge(): Refusal {
  return refuse('body-too-large', `Request entity too large: limit is ${MAX_WRITE_BYTES}`)
}

function messageOf({ body }: KubeAnswer): string {
  try {
    const status: unknown = JSON.parse(body)
    return isRecord(status) && typeof status['message'] === 'string' ? status['message'] : ''
  } catch {
    return ''
  }
}

/**
 * Without the client's `timeout`, by which the dry run could fail and the write itself, sent a moment later, succeed. The client may
 * have sent a dryRun, too.
 */
function dryRunOf(target: string): string {
  const at = target.indexOf('?')
  if (at < 0) return `${target}?dryRun=All`
  const kept = target
    .slice(at + 1)
    .split('&')
    .filter((pair) => decodeQueryPart(pair.split('=', 1)[0] ?? '') !== 'timeout')
  return `${target.slice(0, at)}?${[...kept, 'dryRun=All'].join('&')}`
}
