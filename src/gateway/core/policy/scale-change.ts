// The effect of a write on its target's spec.replicas.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import type { ScaleTarget } from '../request/scale-target.ts'
import type { RefusedWrite } from './ending-writes.ts'

/** Shared by the filters of a request. A subject that remembers something about it adds a field of its own (scaling/request/chosen-victims.ts). */
export interface ScaleChange {
  readonly target: ScaleTarget
  /** Current spec.replicas upstream; undefined = there is no such object, or it is unknown (see `unknown`). */
  readonly from: number | undefined
  /** Its value if the write succeeds; undefined = unknown (see `unknown`). */
  readonly to: number | undefined
  /** The current state upstream: the object if readsObject says so, else its Scale. undefined = there is none, or it was not read. */
  readonly current: JsonObject | undefined
  /** Why `from` or `to` is unknown, for people; absent = both are known. */
  readonly unknown?: string
  /** The same for metrics; present with `unknown`. */
  readonly unknownReason?: UnknownReason
  /** Upstream's answer, if it refused the dry run. */
  readonly answered?: RefusedWrite
}

export type UnknownReason =
  /** Upstream did not say whether the caller is allowed to. */
  | 'rights'
  | 'unreadable'
  /** Upstream refused the dry run, or did not answer it. */
  | 'dry-run'
  /** The target could not be read. */
  | 'not-read'

/** Whether the object itself can be read; for other kinds only their Scale has a common form. */
export function readsObject({ isScale, builtIn }: ScaleTarget): boolean {
  return builtIn || !isScale
}

/** spec.replicas of an object or a Scale. @returns undefined if absent */
export function replicasOf(object: JsonObject, { isScale }: Pick<ScaleTarget, 'isScale'>): number | undefined {
  const { replicas } = recordOf(object['spec'])
  if (typeof replicas === 'number' && Number.isInteger(replicas)) return replicas
  // A Scale omits zero.
  return replicas === undefined && isScale ? 0 : undefined
}
