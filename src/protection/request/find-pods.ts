// The pods that a request wants to delete, read consistently: not from a cache of the API server.

import {
  type Collection,
  type Limited,
  type Outcome,
  type Read,
  type Unknown,
  UpstreamReader,
} from '../../gateway/request/calls/upstream-reader.ts'
import { isRecord, textOf } from '../../kit/api/json/object-shape.ts'
import { KubeCallError } from '../../kube/core/answers/call-errors.ts'
import type { PodFacts } from '../api/protection.ts'
import { podFacts } from '../core/quota/pod-facts.ts'
import type { Deletion } from './deletion.ts'

/** Per namespace: a cluster has at most 150,000 (kubernetes.io/docs/setup/best-practices/cluster-large). */
const MAX_PODS = 150_000

export async function findPod(deletion: Deletion, name: string): Promise<Outcome<PodFacts>> {
  const path = `${podsPath(deletion.decision.info.namespace)}/${encodeURIComponent(name)}`
  const found = await readerFor(deletion).get(path)
  if (found.kind === 'absent') return found
  if (found.kind !== 'found') return unread('the pod cannot be read', found)
  const pod = podFacts(found.value)
  if (pod !== undefined) return { kind: 'found', value: pod }
  return { kind: 'unknown', why: 'the pod cannot be read: the answer is not a Pod' }
}

/** @param limit 0 = all */
export async function listPods(deletion: Deletion, limit: number): Promise<Read<Collection<PodFacts>>> {
  const { namespace, fieldSelector, labelSelector } = deletion.decision.info
  const query = [
    fieldSelector === '' ? '' : `fieldSelector=${encodeURIComponent(fieldSelector)}`,
    labelSelector === '' ? '' : `labelSelector=${encodeURIComponent(labelSelector)}`,
  ]
  const found = await readerFor(deletion).list(
    podsPath(namespace),
    query.filter((one) => one !== '').join('&'),
    limit === 0 ? MAX_PODS : limit,
    (items) => items.map((item) => (isRecord(item) ? podFacts(item) : undefined) ?? notAPod()),
  )
  if (found.kind !== 'found') return unread('the pods cannot be listed', found)
  if (limit !== 0 || textOf(found.value.metadata['continue']) === '') return found
  const why = `the pods cannot be listed: there are more than ${MAX_PODS}`
  return { kind: 'limited', why, retryAfterSeconds: 0 }
}

function notAPod(): never {
  throw new KubeCallError('the answer is not a PodList')
}

/** Reads are charged to the caller. */
function readerFor({ decision, settings }: Deletion): UpstreamReader {
  return new UpstreamReader(decision, 'pod-read', () => settings.timeoutMs)
}

/** Fails closed: what is too large to read is not deleted, whatever the failure policy says. */
function unread(what: string, fault: Unknown | Limited): Unknown | Limited {
  if (fault.kind === 'limited') return fault
  const why = `${what}: ${fault.why}`
  return fault.tooLarge ? { kind: 'limited', why, retryAfterSeconds: 0 } : { ...fault, why }
}

export function podsPath(namespace: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`
}
