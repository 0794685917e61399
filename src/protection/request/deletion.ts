// A deletion or an eviction to be evaluated: shared context of all steps, its body, and the pods it means, which are read consistently: not
// from a cache of the API server.

import type { CompiledProtection } from '../../gateway/core/cluster/compiled-cluster.ts'
import { fieldsForBody, UnreadableBody } from '../../gateway/core/request/write-envelope.ts'
import { type Removal, readRemoval } from '../../gateway/request/calls/request-bodies.ts'
import {
  type Collection,
  type Limited,
  type Outcome,
  type Read,
  type Unknown,
  UpstreamReader,
} from '../../gateway/request/calls/upstream-reader.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import type { Exchange } from '../../gateway/request/exchange/exchange.ts'
import { isRecord, textOf } from '../../kit/api/json/object-shape.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { KubeCallError } from '../../kube/core/answers/call-errors.ts'
import type { HealthCriterion, PodFacts, ProtectionGate, ProtectionRequest } from '../api/protection.ts'
import { healthCriterion, podFacts } from '../core/quota/pod-facts.ts'

/**
 * A uid that no pod has, as a precondition: upstream then reports itself that there is no such pod, and deletes none created
 * meanwhile.
 */
export const NO_POD_UID = '00000000-0000-0000-0000-000000000000'

export interface Deletion {
  readonly exchange: Exchange
  readonly decision: Decision
  readonly settings: CompiledProtection
  readonly gate: ProtectionGate
  readonly cause: ProtectionRequest['cause']
}

export interface AskedDeletion extends Removal {
  /** The Eviction's own, which outranks the pod's; undefined = none. */
  readonly criterion: HealthCriterion | undefined
  /** Request header fields, unmodified. */
  readonly fields: HeaderList
}

/** Reads and parses the body. Only for an authorized caller. */
export async function readAsked({ exchange, cause }: Deletion): Promise<AskedDeletion | Refusal> {
  try {
    const isEviction = cause === 'EvictPod'
    const removal = await readRemoval(exchange, isEviction, 'where this gateway protects pods')
    if (isRefusal(removal)) return removal
    const criterion = isEviction ? healthCriterion(removal.annotations) : undefined
    return { ...removal, criterion, fields: exchange.head.fields }
  } catch (error) {
    if (!(error instanceof UnreadableBody)) throw error
    return refuse(UNREADABLE[error.code], error.message)
  }
}

const UNREADABLE = { 400: 'bad-request', 413: 'body-too-large', 415: 'unsupported-media-type' } as const

/**
 * Sends the request upstream unmodified: only if the failure policy allows everything. The body that was read is the one
 * sent, so that no other parser of it can arrive at another pod.
 */
export function keepBody({ exchange }: Deletion, asked: AskedDeletion): void {
  exchange.head.fields = [...asked.fields]
  exchange.setBody(asked.bytes)
}

/**
 * Restricts the request to the pod with this uid, whatever other pod takes its name.
 * @param resourceVersion additional precondition; '' = any version
 */
export function bindBody({ exchange }: Deletion, asked: AskedDeletion, uid: string, resourceVersion: string): void {
  const body = asked.bound(uid, resourceVersion)
  exchange.head.fields = fieldsForBody(asked.fields, asked.contentType, body.length)
  exchange.setBody(body)
}

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
