// The gateway's own calls about pods that somebody wants to delete.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord, recordOf, textOf } from '../../api/kube/object-shape.ts'
import type { PodFacts } from '../../api/ports/protection.ts'
import { errorMessage } from '../../api/validation/error-message.ts'
import { type AnswerLimits, OBJECT } from '../../core/answers/answer-limits.ts'
import { AnswerTooLargeError, CallLimitError } from '../../core/answers/call-errors.ts'
import { heldBytes } from '../../core/answers/held-bytes.ts'
import { listPages, type ReadPage } from '../../core/answers/paged-list.ts'
import { ranksPods } from '../../core/protection/competition/order-settings.ts'
import { factsReader } from '../../core/protection/competition/ranked-facts.ts'
import type { KubeAnswer } from '../../io/upstream/kube-call.ts'
import { callAsGateway, refusalOf } from '../calls/call-as-gateway.ts'
import { keepAnswer } from '../exchange/kept-answers.ts'
import type { Deletion } from './deletion.ts'

/** Of one namespace: a cluster has 150,000 at most (kubernetes.io/docs/setup/best-practices/cluster-large). */
const MAX_PODS = 150_000

/** Nobody can say; why, for people. */
export interface Unknown {
  readonly kind: 'unknown'
  readonly message: string
}

/** A limit of the gateway's own is in the way. No failure policy lifts it: a client could bring it about. */
export interface Limited {
  readonly kind: 'limited'
  readonly message: string
  /** 0 = it does not help to come back. */
  readonly retryAfterSeconds: number
}

export type FoundPod =
  | { readonly kind: 'pod'; readonly pod: PodFacts }
  | { readonly kind: 'absent' }
  | Unknown
  | Limited

/** Consistently: not from a cache of the API server. */
export async function findPod(deletion: Deletion, name: string): Promise<FoundPod> {
  const path = `${podsPath(deletion.decision.info.namespace)}/${encodeURIComponent(name)}`
  try {
    const answer = await readAsGateway(deletion, path, OBJECT)
    if (answer.status === 404) return { kind: 'absent' }
    if (answer.status !== 200) return { kind: 'unknown', message: `the pod cannot be read: ${refusalOf(answer)}` }
    const object: unknown = JSON.parse(answer.body)
    const pod = isRecord(object) ? factsReader(ranksPods(deletion.settings))(object) : undefined
    if (pod !== undefined) return { kind: 'pod', pod }
    return { kind: 'unknown', message: 'the pod cannot be read: the answer is not a Pod' }
  } catch (error) {
    return unread('the pod cannot be read', error)
  }
}

export type FoundPods =
  | {
      readonly kind: 'pods'
      readonly pods: readonly PodFacts[]
      /** ListMeta of the last page. */
      readonly metadata: Readonly<Record<string, unknown>>
    }
  /** What the client asked for cannot be listed: upstream's own answer. */
  | { readonly kind: 'refused'; readonly answer: KubeAnswer }
  | Unknown
  | Limited

/** What upstream answered in the place of a page. */
class NotListedError extends Error {
  readonly answer: KubeAnswer

  constructor(answer: KubeAnswer) {
    super(`the pods cannot be listed: ${refusalOf(answer)}`)
    this.answer = answer
  }
}

/** @param limit 0 = all */
export async function listPods(deletion: Deletion, limit: number): Promise<FoundPods> {
  const { decision, exchange, settings } = deletion
  const { info } = decision
  const read: ReadPage = async (size, next, limits) => {
    const path = `${podsPath(info.namespace)}?${listQuery(info, size, next)}`
    const answer = await readAsGateway(deletion, path, limits)
    if (answer.status !== 200) throw new NotListedError(answer)
    return recordOf(JSON.parse(answer.body))
  }
  const pods: PodFacts[] = []
  let metadata: Readonly<Record<string, unknown>> = {}
  try {
    for await (const page of listPages(read, limit === 0 ? MAX_PODS : limit)) {
      const facts = podsOf(page, factsReader(ranksPods(settings)))
      if (facts === undefined)
        return { kind: 'unknown', message: 'the pods cannot be listed: the answer is not a PodList' }
      keepAnswer(exchange, heldBytes(facts))
      for (const pod of facts) pods.push(pod)
      metadata = recordOf(page['metadata'])
      if (exchange.gone) break
    }
    if (limit === 0 && textOf(metadata['continue']) !== '' && !exchange.gone) {
      const message = `the pods cannot be listed: there are more than ${MAX_PODS}`
      return { kind: 'limited', message, retryAfterSeconds: 0 }
    }
    return { kind: 'pods', pods, metadata }
  } catch (error) {
    if (!(error instanceof NotListedError)) return unread('the pods cannot be listed', error)
    const { answer, message } = error
    return answer.status === 400 || answer.status === 422 ? { kind: 'refused', answer } : { kind: 'unknown', message }
  }
}

/** In the turn of whoever wants to delete. */
function readAsGateway(deletion: Deletion, path: string, limits: AnswerLimits): Promise<KubeAnswer> {
  const { exchange, settings } = deletion
  const { live } = deletion.decision
  const { timeoutMs } = settings
  return callAsGateway(exchange.gw, live, {
    kind: 'pod-read',
    charge: exchange.charge,
    method: 'GET',
    path,
    timeoutMs,
    limits,
  })
}

function unread(what: string, error: unknown): Unknown | Limited {
  if (error instanceof CallLimitError)
    return { kind: 'limited', message: error.message, retryAfterSeconds: error.retryAfterSeconds }
  const message = `${what}: ${errorMessage(error)}`
  return error instanceof AnswerTooLargeError
    ? { kind: 'limited', message, retryAfterSeconds: 0 }
    : { kind: 'unknown', message }
}

export function podsPath(namespace: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`
}

function listQuery(
  { fieldSelector, labelSelector }: { readonly fieldSelector: string; readonly labelSelector: string },
  limit: number,
  next: string,
): string {
  let query = `limit=${limit}`
  if (fieldSelector !== '') query += `&fieldSelector=${encodeURIComponent(fieldSelector)}`
  if (labelSelector !== '') query += `&labelSelector=${encodeURIComponent(labelSelector)}`
  return next === '' ? query : `${query}&continue=${encodeURIComponent(next)}`
}

function podsOf({ items }: JsonObject, factsOf: ReturnType<typeof factsReader>): PodFacts[] | undefined {
  if (!Array.isArray(items)) return undefined
  const pods: PodFacts[] = []
  for (const item of items as readonly unknown[]) {
    const pod = isRecord(item) ? factsOf(item) : undefined
    if (pod === undefined) return undefined
    pods.push(pod)
  }
  return pods
}
