// The pods of a workload that is scaled, and what decides about them: read as the gateway, and no more of them than can be compared.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { recordOf, textOf } from '../../api/kube/object-shape.ts'
import { podSelectors } from '../../core/scale/rank/pods-to-read.ts'
import { podSelector } from '../../core/scale/rank/replica-set-pods.ts'
import type { ScalableKind } from '../../core/scale/rank/scale-down-plan.ts'
import { controllerUid } from '../../core/scale/rank/scale-pod.ts'
import type { UncheckedReason } from '../../core/scale/scale-write/outcome.ts'
import type { Limited, UpstreamReader } from '../calls/upstream-reader.ts'
import { withoutBulks } from './upstream-objects.ts'

/** Pods that are compared: equal ones cost the square of their number. */
const MAX_PODS = 500
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

export async function readPods(
  upstream: UpstreamReader,
  kind: ScalableKind,
  workload: JsonObject,
  namespace: string,
): Promise<ReadPods | UnreadPods | Limited> {
  const within = `/namespaces/${encodeURIComponent(namespace)}`
  let replicaSets: readonly JsonObject[] = []
  if (kind === 'Deployment') {
    const selector = podSelector(workload)?.text ?? ''
    const found = await readList(upstream, `/apis/apps/v1${within}/replicasets`, selector, MAX_REPLICA_SETS)
    if ('kind' in found) return found
    replicaSets = found
  }
  const uid = textOf(recordOf(workload['metadata'])['uid'])
  const own = replicaSets.filter((one) => controllerUid(one) === uid)
  const pods = new Map<string, JsonObject>()
  for (const selector of podSelectors(kind, workload, own)) {
    const found = await readList(upstream, `/api/v1${within}/pods`, selector, MAX_PODS)
    if ('kind' in found) return found
    for (const pod of found) pods.set(textOf(recordOf(pod['metadata'])['uid']), pod)
    if (pods.size > MAX_PODS) return tooMany('pods', MAX_PODS)
  }
  return { kind: 'pods', replicaSets: own, pods: [...pods.values()] }
}

async function readList(
  upstream: UpstreamReader,
  path: string,
  selector: string,
  most: number,
): Promise<readonly JsonObject[] | UnreadPods | Limited> {
  const what = path.slice(path.lastIndexOf('/') + 1)
  // One more, so that it is seen that there are more.
  const found = await upstream.list(path, `labelSelector=${encodeURIComponent(selector)}`, most + 1, withoutBulks)
  switch (found.kind) {
    case 'limited':
      return found
    case 'unknown': {
      const unlisted = found.answered === undefined ? 'the pods' : what
      return { kind: 'unread', reason: 'not-read', why: `${unlisted} cannot be listed: ${found.why}` }
    }
    case 'found':
      return found.value.items.length > most ? tooMany(what, most) : found.value.items
  }
}

function tooMany(what: string, most: number): UnreadPods {
  return { kind: 'unread', reason: 'too-many-pods', why: `there are more than ${most} ${what} to compare` }
}
