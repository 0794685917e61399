// The pods of a workload that is scaled, and what decides about them: read as the gateway, and no more of them than can be compared.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord, recordOf, textOf } from '../../api/kube/object-shape.ts'
import { podSelectors } from '../../core/scale/rank/pods-to-read.ts'
import { podSelector } from '../../core/scale/rank/replica-set-pods.ts'
import type { ScalableKind } from '../../core/scale/rank/scale-down-plan.ts'
import { controllerUid } from '../../core/scale/rank/scale-pod.ts'
import type { UncheckedReason } from '../../core/scale/scale-write/outcome.ts'
import type { KubeAnswer } from '../../io/upstream/kube-call.ts'
import { refusalOf } from '../calls/call-as-gateway.ts'

/** Pods that are compared: equal ones cost the square of their number. */
export const MAX_PODS = 500
/** Of a Deployment: its history has ten. */
const MAX_REPLICA_SETS = 200
/** Small enough that reading a page does not hold up other requests. */
const PAGE_SIZE = 100

export interface ReadPods {
  readonly kind: 'pods'
  /** Of a Deployment. */
  readonly replicaSets: readonly JsonObject[]
  readonly pods: readonly JsonObject[]
}

export interface UnreadPods {
  readonly kind: 'unread'
  readonly reason: UncheckedReason
  /** For people. */
  readonly why: string
}

/** A GET of this path as the gateway. @throws {KubeCallError} */
export type Read = (path: string) => Promise<KubeAnswer>

/** @throws {KubeCallError} @throws {SyntaxError} */
export async function readPods(
  read: Read,
  kind: ScalableKind,
  workload: JsonObject,
  namespace: string,
): Promise<ReadPods | UnreadPods> {
  const within = `/namespaces/${encodeURIComponent(namespace)}`
  const replicaSets: JsonObject[] = []
  if (kind === 'Deployment') {
    const selector = podSelector(workload)?.text ?? ''
    const unread = await readList(read, `/apis/apps/v1${within}/replicasets`, selector, MAX_REPLICA_SETS, replicaSets)
    if (unread !== undefined) return unread
  }
  const uid = textOf(recordOf(workload['metadata'])['uid'])
  const own = replicaSets.filter((one) => controllerUid(one) === uid)
  const pods = new Map<string, JsonObject>()
  for (const selector of podSelectors(kind, workload, own)) {
    const found: JsonObject[] = []
    const unread = await readList(read, `/api/v1${within}/pods`, selector, MAX_PODS, found)
    if (unread !== undefined) return unread
    for (const pod of found) pods.set(textOf(recordOf(pod['metadata'])['uid']), pod)
    if (pods.size > MAX_PODS) return tooMany('pods')
  }
  return { kind: 'pods', replicaSets: own, pods: [...pods.values()] }
}

/** Page by page into `into`. @returns undefined = all of them are there */
async function readList(
  read: Read,
  path: string,
  selector: string,
  max: number,
  into: JsonObject[],
): Promise<UnreadPods | undefined> {
  let next = ''
  do {
    const query = `limit=${PAGE_SIZE}&labelSelector=${encodeURIComponent(selector)}`
    const answer = await read(`${path}?${query}${next === '' ? '' : `&continue=${encodeURIComponent(next)}`}`)
    const what = path.slice(path.lastIndexOf('/') + 1)
    if (answer.status !== 200)
      return { kind: 'unread', reason: 'not-read', why: `${what} cannot be listed: ${refusalOf(answer)}` }
    const list: unknown = JSON.parse(answer.body)
    if (!isRecord(list) || !Array.isArray(list['items']))
      return { kind: 'unread', reason: 'not-read', why: `${what} cannot be listed: the answer is not a list` }
    // A loop: whatever upstream answers, there may be more than a call takes arguments.
    for (const item of list['items'] as readonly unknown[]) if (isRecord(item)) into.push(item)
    next = textOf(recordOf(list['metadata'])['continue'])
    if (into.length > max || (next !== '' && into.length >= max)) return tooMany(what)
  } while (next !== '')
  return undefined
}

function tooMany(what: string): UnreadPods {
  const max = what === 'pods' ? MAX_PODS : MAX_REPLICA_SETS
  return { kind: 'unread', reason: 'too-many-pods', why: `there are more than ${max} ${what} to compare` }
}
