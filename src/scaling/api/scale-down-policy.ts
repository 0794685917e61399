// ScaleDownPolicy: which pods of a workload are deleted first in a scale-down, in the clusters behind the gateway.

import type { ValueOf } from '../../kit/api/json/json-schema.ts'
import type { ObjectMeta } from '../../kube/api/meta.ts'
import type { SCALE_DOWN_POLICY_SPEC_SCHEMA, SCALE_DOWN_POLICY_STATUS_SCHEMA } from './schema.ts'

export interface ScaleDownPolicy {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
  readonly spec: ScaleDownPolicySpec
  readonly status?: ScaleDownPolicyStatus
}

export type ScaleDownPolicySpec = ValueOf<typeof SCALE_DOWN_POLICY_SPEC_SCHEMA>
export type VictimPreference = ScaleDownPolicySpec['prefer'][number]
export type ScaleDownPolicyStatus = ValueOf<typeof SCALE_DOWN_POLICY_STATUS_SCHEMA>
export type LastScaleDown = NonNullable<ScaleDownPolicyStatus['lastScaleDown']>
export type PolicyCondition = NonNullable<ScaleDownPolicyStatus['conditions']>[number]
