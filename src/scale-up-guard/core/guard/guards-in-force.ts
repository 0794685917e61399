// The part of ScaleUpGuards that the request path enforces: plain data, because it crosses threads.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { Topic } from '../../../kit/core/topics/topics.ts'
import type { GroupBackoff } from './check-raise.ts'
import type { CompiledGuard } from './compile-guard.ts'
import { backoffsIn } from './guard-status.ts'

/** A guard with its groups in backoff. */
export interface GuardInForce {
  readonly guard: string
  /** UpstreamCluster through which the groups are written. */
  readonly cluster: string
  readonly apiGroup: string
  /** Users whose raises are refused. */
  readonly users: readonly string[]
  readonly shadow: boolean
  readonly backoffs: readonly GroupBackoff[]
}

/** @returns undefined = none of its groups is in backoff */
export function guardInForce(guard: CompiledGuard, object: JsonObject, nowMs: number): GuardInForce | undefined {
  const backoffs = backoffsIn(object, nowMs)
  if (backoffs.length === 0) return undefined
  const { name, management, group, autoscalerUsers, policy } = guard
  return { guard: name, cluster: management, apiGroup: group, users: autoscalerUsers, shadow: policy.shadow, backoffs }
}

/** All node groups currently backed off: to the gateway threads. */
export const GUARDS_IN_FORCE = new Topic<readonly GuardInForce[]>('scale-up-guards')
