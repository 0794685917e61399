// The pods of a workload that is scaled, and what decides about them: read as the gateway, and no more of them than can be compared.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord, recordOf, textOf } from '../../api/kube/object-shape.ts'
import type { AnswerLimits } from '../../core/answers/answer-limits.ts'
import { heldBytes, withoutBulk } from '../../core/answers/held-bytes.ts'
import { itemsOf, listPages, type ReadPage } from '../../core/answers/paged-list.ts'
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

export interface UpstreamPods {
  /** A GET of this path as the gateway. @throws {KubeCallError} */
  read(path: string, limits: AnswerLimits): Promise<KubeAnswer>
  /** So many bytes of what was read are kept. @throws {KubeCallError} */
  keep(bytes: number): void
}

/** @throws {KubeCallError} @throws {SyntaxError} */
export async function readPods(
  upstream: UpstreamPods,
  kind: ScalableKind,
  workload: JsonObject,
  namespace: string,
): Promise<ReadPods | UnreadPods> {
  const within = `/namespaces/${encodeURIComponent(namespace)}`
  const replicaSets: JsonObject[] = []
  if (kind === 'Deployment') {
    const selector = podSelector(workload)?.text ?? ''
    const unread = await readList(
      upstream,
      `/apis/apps/v1${within}/replicasets`,
      selector,
      MAX_REPLICA_SETS,
      replicaSets,
    )
    if (unread !== undefined) return unread
  }
  const uid = textOf(recordOf(workload['metadata'])['uid'])
  const own = replicaSets.filter((one) => controllerUid(one) === uid)
  const pods = new Map<string, JsonObject>()
  for (const selector of podSelectors(kind, workload, own)) {
    const found: JsonObject[] = []
    const unread = await readList(upstream, `/api/v1${within}/pods`, selector, MAX_PODS, found)
    if (unread !== undefined) return unread
    for (const pod of found) pods.set(textOf(recordOf(pod['metadata'])['uid']), pod)
    if (pods.size > MAX_PODS) return tooMany('pods')
  }
  return { kind: 'pods', replicaSets: own, pods: [...pods.values()] }
}

/** Page by page into `into`. @returns undefined = all of them are there */
async function readList(
  upstream: UpstreamPods,
  path: string,
  selector: string,
  max: number,
  into: JsonObject[],
): Promise<UnreadPods | undefined> {
  const what = path.slice(path.lastIndexOf('/') + 1)
  const notRead = (why: string): NotReadError => new NotReadError(`${what} cannot be listed: ${why}`)
  const read: ReadPage = async (limit, next, limits) => {
    const query = `limit=${limit}&labelSelector=${encodeURIComponent(selector)}`
    const more = next === '' ? '' : `&continue=${encodeURIComponent(next)}`
    const answer = await upstream.read(`${path}?${query}${more}`, limits)
    if (answer.status !== 200) throw notRead(refusalOf(answer))
    const list: unknown = JSON.parse(answer.body)
    if (!isRecord(list) || !Array.isArray(list['items'])) throw notRead('the answer is not a list')
    return list
  }
  try {
    // One more, so that it is seen that there are more.
    for await (const page of listPages(read, max + 1)) {
      const objects = itemsOf(page).filter(isRecord).map(withoutBulk)
      upstream.keep(heldBytes(objects))
      // A loop: whatever upstream answers, there may be more than a call takes arguments.
      for (const object of objects) into.push(object)
      if (into.length > max) return tooMany(what)
    }
    return undefined
  } catch (error) {
    if (error instanceof NotReadError) return { kind: 'unread', reason: 'not-read', why: error.message }
    throw error
  }
}

class NotReadError extends Error {}

function tooMany(what: string): UnreadPods {
  const max = what === 'pods' ? MAX_PODS : MAX_REPLICA_SETS
  return { kind: 'unread', reason: 'too-many-pods', why: `there are more than ${max} ${what} to compare` }
}
