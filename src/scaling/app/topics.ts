// Topics between the main thread and the gateway threads about scale-downs.

import { Topic } from '../../kit/core/topics/topics.ts'
import type { ScaleDownReport } from '../api/scale-down.ts'
import type { CompiledScaleDownPolicy } from '../core/victim-choice/policy.ts'

/** All ScaleDownPolicies in force, to the gateway threads. */
export const POLICIES_IN_FORCE = new Topic<readonly CompiledScaleDownPolicy[]>('scale-down-policies')
/** Outcome of a scale-down governed by a policy, to the main thread. */
export const SCALED_DOWN = new Topic<ScaleDownReport>('scaled-down')
