// The gateway's own calls about pods that somebody wants to delete.

import { isRecord } from '../../api/kube/object-shape.ts'
import type { PodFacts } from '../../api/ports/protection.ts'
import { podFacts } from '../../core/protection/quota/pod-facts.ts'
import type { KubeAnswer } from '../../io/upstream/kube-call.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import { callAsGateway, refusalOf } from '../calls/call-as-gateway.ts'
import type { Gateway } from '../exchange/gateway.ts'

/** Of a list: what a page of PAGE_SIZE pods may well take, with room. */
const MAX_LIST_BYTES = 64 * 1024 * 1024
const PAGE_SIZE = 250
const POD_READ = { kind: 'pod-read', source: 'deletions of pods', method: 'GET' } as const

export type FoundPod =
  | { readonly kind: 'pod'; readonly pod: PodFacts }
  | { readonly kind: 'absent' }
  /** Nobody can say; why, for people. */
  | { readonly kind: 'unknown'; readonly message: string }

/** Consistently: not from a cache of the API server. */
export async function findPod(
  gw: Gateway,
  live: LiveCluster,
  namespace: string,
  name: string,
  timeoutMs: number,
): Promise<FoundPod> {
  const path = `${podsPath(namespace)}/${encodeURIComponent(name)}`
  try {
    const answer = await callAsGateway(gw, live, { ...POD_READ, path, timeoutMs })
    if (answer.status === 404) return { kind: 'absent' }
    if (answer.status !== 200) return { kind: 'unknown', message: `the pod cannot be read: ${refusalOf(answer)}` }
    const object: unknown = JSON.parse(answer.body)
    const pod = isRecord(object) ? podFacts(object) : undefined
    if (pod !== undefined) return { kind: 'pod', pod }
    return { kind: 'unknown', message: 'the pod cannot be read: the answer is no pod' }
  } catch (error) {
    return { kind: 'unknown', message: `the pod cannot be read: ${reasonOf(error)}` }
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
  | { readonly kind: 'unknown'; readonly message: string }

/** @param limit 0 = all */
export async function listPods(
  gw: Gateway,
  live: LiveCluster,
  namespace: string,
  selectors: { readonly fieldSelector: string; readonly labelSelector: string },
  limit: number,
  timeoutMs: number,
): Promise<FoundPods> {
  const pods: PodFacts[] = []
  let metadata: Readonly<Record<string, unknown>> = {}
  try {
    do {
      const size = limit === 0 ? PAGE_SIZE : Math.min(PAGE_SIZE, limit - pods.length)
      const path = `${podsPath(namespace)}?${listQuery(selectors, size, continueOf(metadata))}`
      const answer = await callAsGateway(gw, live, { ...POD_READ, path, timeoutMs, maxAnswerBytes: MAX_LIST_BYTES })
      if (answer.status === 400 || answer.status === 422) return { kind: 'refused', answer }
      if (answer.status !== 200) return { kind: 'unknown', message: `the pods cannot be listed: ${refusalOf(answer)}` }
      const page = readPage(answer.body)
      if (page === undefined)
        return { kind: 'unknown', message: 'the pods cannot be listed: the answer is no list of pods' }
      for (const pod of page.pods) pods.push(pod)
      metadata = page.metadata
    } while (continueOf(metadata) !== '' && (limit === 0 || pods.length < limit))
    return { kind: 'pods', pods, metadata }
  } catch (error) {
    return { kind: 'unknown', message: `the pods cannot be listed: ${reasonOf(error)}` }
  }
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
): { readonly pods: readonly PodFacts[]; readonly metadata: Readonly<Record<string, unknown>> } | undefined {
  const list: unknown = JSON.parse(body)
  if (!isRecord(list) || !Array.isArray(list['items'])) return undefined
  const pods: PodFacts[] = []
  for (const item of list['items'] as readonly unknown[]) {
    const pod = isRecord(item) ? podFacts(item) : undefined
    if (pod === undefined) return undefined
    pods.push(pod)
  }
  return { pods, metadata: isRecord(list['metadata']) ? list['metadata'] : {} }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
