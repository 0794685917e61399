// What a write does to spec.replicas of what it is for.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import type { Costs, VictimFinding } from '../victim-choice/find-victims.ts'
import type { ScaleTarget } from './scale-target.ts'

export interface ScaleChange {
  readonly target: ScaleTarget
  /** spec.replicas as upstream has it; undefined = there is no such object, or `unknown` says why nobody knows. */
  readonly from: number | undefined
  /** What it becomes if the write succeeds; undefined = `unknown` says why nobody knows. */
  readonly to: number | undefined
  /** As upstream has it: of a kind that readsObject says the object, else its Scale. undefined = there is none, or it was not read. */
  readonly current: JsonObject | undefined
  /** Why `from` or `to` is not known, for people; absent = both are. */
  readonly unknown?: string
  /** The same for metrics; present with `unknown`. */
  readonly unknownReason?: UnknownReason
  /** Upstream's answer, where it has refused the dry run. */
  readonly answered?: RefusedWrite
  /** What a ScaleDownPolicy does with it, once a filter has asked; undefined in it = there is none. */
  finding?: Promise<VictimFinding | undefined>
  /** Left by the filter that names the pods that go, for the one that chooses them: called once that has set their costs. */
  nameLeaving?: (costs: Costs) => Promise<void>
}

/** Upstream refuses the write: its answer to a dry run of it. */
export interface RefusedWrite {
  readonly kind: 'refused'
  readonly status: number
  readonly body: string
}

export type UnknownReason =
  /** Upstream did not say whether the caller may. */
  | 'rights'
  | 'unreadable'
  /** Upstream refused the dry run, or gave no answer to it. */
  | 'dry-run'
  /** What is scaled could not be read. */
  | 'not-read'

/** Whether the object itself says what there is to know; of other kinds only their Scale can be read in one way for all. */
export function readsObject({ isScale, builtIn }: ScaleTarget): boolean {
  return builtIn || !isScale
}

/** spec.replicas of an object or a Scale. @returns undefined when it says none */
export function replicasOf(object: JsonObject, { isScale }: Pick<ScaleTarget, 'isScale'>): number | undefined {
  const { replicas } = recordOf(object['spec'])
  if (typeof replicas === 'number' && Number.isInteger(replicas)) return replicas
  // A Scale leaves out zero.
  return replicas === undefined && isScale ? 0 : undefined
}
