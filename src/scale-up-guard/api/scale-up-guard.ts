// ScaleUpGuard: backs off Cluster API node groups whose scale-up failed, and removes the failed part.

import type { ValueOf } from '../../kit/api/json/json-schema.ts'
import type { ObjectMeta } from '../../kube/api/meta.ts'
import type { SCALE_UP_GUARD_SPEC_SCHEMA, SCALE_UP_GUARD_STATUS_SCHEMA } from './schema.ts'

export interface ScaleUpGuard {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
  readonly spec: ScaleUpGuardSpec
  readonly status?: ScaleUpGuardStatus
}

export type ScaleUpGuardSpec = ValueOf<typeof SCALE_UP_GUARD_SPEC_SCHEMA>
/** Durations in Go's format. */
export type FailureRules = NonNullable<ScaleUpGuardSpec['failure']>
/** Durations in Go's format. */
export type GuardBackoff = NonNullable<ScaleUpGuardSpec['backoff']>
export type ScaleUpGuardStatus = ValueOf<typeof SCALE_UP_GUARD_STATUS_SCHEMA>
export type GuardedGroup = NonNullable<ScaleUpGuardStatus['groups']>[number]
export type GroupRequest = NonNullable<GuardedGroup['requests']>[number]
/** An absent `machine` means a replica of a MachinePool. */
export type FailedMachine = NonNullable<GuardedGroup['failed']>[number]
export type GuardCondition = NonNullable<ScaleUpGuardStatus['conditions']>[number]
