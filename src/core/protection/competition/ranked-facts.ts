// What protection needs of a Pod, and where deletions are ordered also what they are ordered by.

import type { JsonObject } from '../../../api/kube/json-object.ts'
import type { PodFacts, PodScaleFacts } from '../../../api/ports/protection.ts'
import { scalePod } from '../../scale/rank/scale-pod.ts'
import { podFacts } from '../quota/pod-facts.ts'

/** Likewise undefined when the object is not a stored pod. */
export function rankedFacts(pod: JsonObject): PodFacts | undefined {
  const facts = podFacts(pod)
  return facts && { ...facts, scale: scaleFacts(pod) }
}

/** @param ranked with what orders deletions */
export function factsReader(ranked: boolean): (pod: JsonObject) => PodFacts | undefined {
  return ranked ? rankedFacts : podFacts
}

function scaleFacts(pod: JsonObject): PodScaleFacts {
  const { controllerUid, nodeName, phase, deletionCost, restarts, sidecarRestarts } = scalePod(pod)
  return { controllerUid, nodeName, phase, deletionCost, restarts, sidecarRestarts }
}
