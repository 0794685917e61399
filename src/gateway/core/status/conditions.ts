// Conditions in the sense of Kubernetes (metav1.Condition): lastTransitionTime is when the status changed last, whatever else has changed since.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf } from '../../../kit/api/json/object-shape.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'

interface AnyCondition {
  readonly type: string
  readonly status: string
  readonly lastTransitionTime: string
}

type Wanted<C extends AnyCondition> = Omit<C, 'lastTransitionTime'>

/** status.conditions as an API server gives them, in which a writer may have put anything. */
export function conditionsOf<C extends AnyCondition>(object: JsonObject): readonly C[] {
  const { conditions } = recordOf(object['status'])
  return Array.isArray(conditions) ? (conditions.filter(isRecord) as unknown as readonly C[]) : []
}

/** @param before of any type; that of `wanted` keeps its time as long as its status stays */
export function transition<C extends AnyCondition>(before: readonly C[], wanted: Wanted<C>, nowMs: number): C {
  const known = before.find(({ type }) => type === wanted.type)
  const since = known?.status === wanted.status ? known.lastTransitionTime : ''
  return { ...wanted, lastTransitionTime: since || metaTime(nowMs) } as C
}

/** The others stay as they are, and each where it is. */
export function withCondition<C extends AnyCondition>(
  before: readonly C[],
  wanted: Wanted<C>,
  nowMs: number,
): readonly C[] {
  const made = transition(before, wanted, nowMs)
  const isKnown = before.some(({ type }) => type === wanted.type)
  return isKnown ? before.map((one) => (one.type === wanted.type ? made : one)) : [...before, made]
}
