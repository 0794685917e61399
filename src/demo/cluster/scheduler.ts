// Stands in for the scheduler: spreads pods of one owner over the nodes.

import { metaText } from '../../apiserver/objects/object-metadata.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { DEMO_NODES } from '../kinds/core-kinds.ts'
import { listAt, objectAt, textAt, valueAt } from '../kinds/json.ts'
import { DEMO_PODS } from '../kinds/pod-kind.ts'
import type { DemoObjects } from './objects.ts'

/** Assigns the pod to a node, if one is eligible. */
export function schedule(objects: DemoObjects, pod: JsonObject): JsonObject {
  const nodeName = nodeFor(objects, ownerUid(pod))
  if (nodeName === undefined) return pod
  return objects.update(DEMO_PODS, { ...pod, spec: { ...objectAt(pod, 'spec'), nodeName } }, 'kube-scheduler')
}

/** The name of the node with the fewest pods of the owner, and among those the fewest pods. */
export function nodeFor(objects: DemoObjects, owner: string): string | undefined {
  const loads = new Map<string, number>()
  for (const node of objects.list(DEMO_NODES)) {
    if (valueAt(node, 'spec.unschedulable') !== true) loads.set(metaText(node, 'name'), 0)
  }
  const pods = objects.list(DEMO_PODS)
  for (const pod of pods) {
    const load = loads.get(nodeOf(pod))
    if (load !== undefined) loads.set(nodeOf(pod), load + (ownerUid(pod) === owner ? pods.length : 1))
  }
  const [least] = [...loads].sort(([, a], [, b]) => a - b)
  return least?.[0]
}

/** '' = not scheduled yet. */
export function nodeOf(pod: JsonObject): string {
  return textAt(pod, 'spec.nodeName')
}

/** metadata.uid of the first owner; '' = there is none. */
export function ownerUid(object: JsonObject): string {
  return textAt(listAt(object, 'metadata.ownerReferences')[0], 'uid')
}
