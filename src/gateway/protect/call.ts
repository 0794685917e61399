// The gateway's own calls about pods that somebody wants to delete.

import { isRecord } from '../../api/kube/object-shape.ts'
import type { PodFacts } from '../../api/ports/protection.ts'
import { errorMessage } from '../../api/validation/error-message.ts'
import { ranksPods } from '../../core/protection/competition/order-settings.ts'
import { factsReader } from '../../core/protection/competition/ranked-facts.ts'
import { AnswerTooLargeError, CallLimitError, type KubeAnswer } from '../../io/upstream/kube-call.ts'
import { callAsGateway, refusalOf } from '../calls/call-as-gateway.ts'
import type { Deletion } from './deletion.ts'

/**
 * Of one pod, or a list of one. etcd takes 1.5 MiB of it (--max-request-bytes), of which JSON may make six times as much: that is
 * how it writes control characters.
 */
export const MAX_POD_BYTES: number = 16 * 1024 * 1024
/** Of a list: what a page of PAGE_SIZE pods may well take, with room. */
const MAX_LIST_BYTES = 64 * 1024 * 1024
const PAGE_SIZE = 250

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
    const answer = await readAsGateway(deletion, path, MAX_POD_BYTES)
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

/** @param limit 0 = all */
export async function listPods(deletion: Deletion, limit: number): Promise<FoundPods> {
  const { info } = deletion.decision
  const pods: PodFacts[] = []
  let pageSize = PAGE_SIZE
  let metadata: Readonly<Record<string, unknown>> = {}
  let whole = false
  try {
    while (!whole) {
      const size = limit === 0 ? pageSize : Math.min(pageSize, limit - pods.length)
      const path = `${podsPath(info.namespace)}?${listQuery(info, size, continueOf(metadata))}`
      const answer = await readPageOf(deletion, path, size)
      if (answer === 'too-large') {
        pageSize = Math.floor(size / 2)
        continue
      }
      if (answer.status === 400 || answer.status === 422) return { kind: 'refused', answer }
      if (answer.status !== 200) return { kind: 'unknown', message: `the pods cannot be listed: ${refusalOf(answer)}` }
      const page = readPage(answer.body, factsReader(ranksPods(deletion.settings)))
      if (page === undefined)
        return { kind: 'unknown', message: 'the pods cannot be listed: the answer is not a PodList' }
      for (const pod of page.pods) pods.push(pod)
      metadata = page.metadata
      whole = continueOf(metadata) === '' || (limit !== 0 && pods.length >= limit)
    }
    return { kind: 'pods', pods, metadata }
  } catch (error) {
    return unread('the pods cannot be listed', error)
  }
}

/** @returns 'too-large' when a page of fewer pods may be small enough */
async function readPageOf(deletion: Deletion, path: string, size: number): Promise<KubeAnswer | 'too-large'> {
  try {
    return await readAsGateway(deletion, path, MAX_LIST_BYTES)
  } catch (error) {
    if (error instanceof AnswerTooLargeError && size > 1) return 'too-large'
    throw error
  }
}

/** In the turn of whoever wants to delete. */
function readAsGateway(deletion: Deletion, path: string, maxAnswerBytes: number): Promise<KubeAnswer> {
  const { exchange, settings } = deletion
  const { live } = deletion.decision
  const { timeoutMs } = settings
  return callAsGateway(exchange.gw, live, {
    kind: 'pod-read',
    charge: exchange.charge,
    method: 'GET',
    path,
    timeoutMs,
    maxAnswerBytes,
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

function continueOf(metadata: Readonly<Record<string, unknown>>): string {
  const token = metadata['continue']
  return typeof token === 'string' ? token : ''
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

function readPage(
  body: string,
  factsOf: ReturnType<typeof factsReader>,
): { readonly pods: readonly PodFacts[]; readonly metadata: Readonly<Record<string, unknown>> } | undefined {
  const list: unknown = JSON.parse(body)
  if (!isRecord(list) || !Array.isArray(list['items'])) return undefined
  const pods: PodFacts[] = []
  for (const item of list['items'] as readonly unknown[]) {
    const pod = isRecord(item) ? factsOf(item) : undefined
    if (pod === undefined) return undefined
    pods.push(pod)
  }
  return { pods, metadata: isRecord(list['metadata']) ? list['metadata'] : {} }
}
