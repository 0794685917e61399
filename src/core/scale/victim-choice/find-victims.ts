// Which pods a ScaleDownPolicy gives a cost: what it prefers is read from the cluster. The request path acts by it, and whoever says beforehand
// which pods go asks the same.

import type { JsonObject } from '../../../api/kube/json-object.ts'
import { recordOf, textOf } from '../../../api/kube/object-shape.ts'
import type { ControllerManager } from '../../../api/upstream-cluster/controller-manager.ts'
import { type ChoiceInput, chooseVictims, type VictimChoice } from './choose-victims.ts'
import type { ClusterReads } from './cluster-reads.ts'
import { withCost, withoutOwnCost } from './own-cost.ts'
import type { CompiledScaleDownPolicy } from './policy.ts'
import { nodesOf } from './read-nodes.ts'
import type { ScaledPods, Unsteerable } from './scaled-pods.ts'

/** What a ScaleDownPolicy does with one scale-down. */
export type VictimFinding = { readonly policy: CompiledScaleDownPolicy; readonly workloadName: string } & (
  | { readonly kind: 'chosen'; readonly choice: VictimChoice; readonly leftMs: number }
  /** The write of the Deployment has chosen for this one of its ReplicaSet; or a rollout lowers that one, and nobody scales. */
  | { readonly kind: 'done' }
  | { readonly kind: 'unsteerable'; readonly why: string }
  | { readonly kind: 'unavailable'; readonly why: string }
)

/** What pods have costs when the controller looks. */
export type Costs =
  | (Pick<VictimChoice, 'victims' | 'stale'> & {
      /** Pods that were found to be gone when they should have got their cost. */
      readonly gone?: readonly JsonObject[]
    })
  /** As they were read. */
  | 'unchanged'
  /** Victims were chosen, and which of them have their cost is not known. */
  | 'open'

/** Without the feature gate the controller does not look at costs. */
export const COSTS_ARE_OFF: Unsteerable = {
  unsteerable: 'kube-controller-manager ignores deletion costs (spec.controllerManager.podDeletionCost is false)',
}

/** @throws {UnavailableError} */
export async function findVictims(
  reads: ClusterReads,
  found: ScaledPods,
  { prefer }: Pick<CompiledScaleDownPolicy, 'prefer'>,
  controller: ControllerManager,
): Promise<VictimChoice> {
  // Costs of ours from before are taken back all the same.
  const needed = found.count <= 0 ? [] : prefer
  const nodes = await nodesOf(reads, found.pods, needed)
  const input: ChoiceInput = { ...found, prefer, nodes, controller }
  return chooseVictims(input)
}

/** The pods as the controller finds them. */
export function withCosts(pods: readonly JsonObject[], costs: Costs): readonly JsonObject[] {
  if (typeof costs === 'string') return pods
  const { victims, stale, gone = [] } = costs
  const [going, staying, absent] = [uidsOf(victims), uidsOf(stale), uidsOf(gone)]
  const there = absent.size === 0 ? pods : pods.filter((pod) => !absent.has(uidOf(pod)))
  return there.map((pod) => {
    const uid = uidOf(pod)
    if (going.has(uid)) return withCost(pod)
    return staying.has(uid) ? withoutOwnCost(pod) : pod
  })
}

function uidsOf(pods: readonly JsonObject[]): ReadonlySet<string> {
  return new Set(pods.map(uidOf))
}

function uidOf(pod: JsonObject): string {
  return textOf(recordOf(pod['metadata'])['uid'])
}
