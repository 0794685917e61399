// Kubernetes conditions (metav1.Condition): lastTransitionTime is when the status last changed, whatever else has changed since.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf } from '../../../kit/api/json/object-shape.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'

interface AnyCondition {
  readonly type: string
  readonly status: string
  readonly lastTransitionTime: string
}

type Wanted<C extends AnyCondition> = Omit<C, 'lastTransitionTime'>

/** status.conditions as returned by an API server: a writer may have put anything there. */
export function conditionsOf<C extends AnyCondition>(object: JsonObject): readonly C[] {
  const { conditions } = recordOf(object['status'])
  return Array.isArray(conditions) ? (conditions.filter(isRecord) as unknown as readonly C[]) : []
}

/** @param before of any shape; the condition of the same type keeps its time as long as its status stays */
export function transition<C extends AnyCondition>(before: readonly C[], wanted: Wanted<C>, nowMs: number): C {
  const known = before.find(({ type }) => type === wanted.type)
  const since = known?.status === wanted.status ? known.lastTransitionTime : ''
  return { ...wanted, lastTransitionTime: since || metaTime(nowMs) } as C
}

/** The others are kept, in place. */
export function withCondition<C extends AnyCondition>(
  before: readonly C[],
  wanted: Wanted<C>,
  nowMs: number,
): readonly C[] {
  const made = transition(before, wanted, nowMs)
  const isKnown = before.some(({ type }) => type === wanted.type)
  return isKnown ? before.map((one) => (one.type === wanted.type ? made : one)) : [...before, made]
}
