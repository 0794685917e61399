// ScaleUpGuard -> CompiledGuard: defaults applied, durations in milliseconds.

import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import { complete, fieldOf } from '../../../kit/api/json/json-schema.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { createSchemaCheck } from '../../../kit/api/validation/schema-errors.ts'
import { parseDuration } from '../../../kit/core/text/duration.ts'
import type { FailureRules, GuardBackoff, ScaleUpGuard, ScaleUpGuardSpec } from '../../api/scale-up-guard.ts'
import { checkScaleUpGuard, SCALE_UP_GUARDS } from '../../api/scale-up-guard-kind.ts'
import { DEFAULT_AUTOSCALER_USERS, DEFAULT_CONDITION_REASONS, SCALE_UP_GUARD_SPEC_SCHEMA } from '../../api/schema.ts'
import type { BackoffOptions } from '../cluster-state.ts'

/** Durations in milliseconds. */
export interface ScaleUpGuardPolicy {
  /** Reasons of a Machine's condition InfrastructureReady=False that waiting can't fix, such as `InstanceProvisionFailed`. */
  readonly conditionReasons: ReadonlySet<string>
  /** How long the condition must hold. */
  readonly minDurationMs: number
  /** A Machine without `spec.providerID` after this time has failed: the cloud created nothing. */
  readonly noProviderIDMs: number
  /** A Machine without `status.nodeRef` after this time has failed, as has a MachinePool replica without a node. */
  readonly noNodeMs: number
  /** Must end before the autoscaler's own (5 to 30 min): otherwise the two refuse in turns. */
  readonly backoff: BackoffOptions
  /** Whether the target is lowered by the failed machines. */
  readonly correctTarget: boolean
  /** Whether machines with an instance, but without a node in time, may be removed. */
  readonly deleteLongUnregistered: boolean
  /** Evaluate, count and report, but neither refuse nor change anything. */
  readonly shadow: boolean
}

export interface CompiledGuard {
  readonly name: string
  readonly uid: string
  readonly generation: number
  /** Names of UpstreamClusters. */
  readonly management: string
  readonly workload: string
  /** API group of Cluster API. */
  readonly group: string
  /** undefined = all groups that the autoscaler may scale. */
  readonly groupSelector: LabelSelector | undefined
  readonly autoscalerUsers: readonly string[]
  readonly policy: ScaleUpGuardPolicy
}

const checkShape = createSchemaCheck(SCALE_UP_GUARDS.schema)

/** @returns a string = what is wrong with it, for people: it guards nothing */
export function compileGuard(object: JsonObject): CompiledGuard | string {
  const errors = [...checkShape(object, '').problems, ...checkScaleUpGuard(object)].filter(
    ({ severity }) => severity === 'error',
  )
  const [first] = errors
  if (first !== undefined) return `${first.path} ${first.message}`
  const { spec, metadata } = object as unknown as ScaleUpGuard
  const { group } = complete(SCALE_UP_GUARD_SPEC_SCHEMA, spec)
  return {
    name: nameOf(object),
    uid: metadata.uid ?? '',
    generation: Number(recordOf(object['metadata'])['generation'] ?? 0),
    management: spec.clusterRef.management,
    workload: spec.clusterRef.workload ?? spec.clusterRef.management,
    group,
    groupSelector: spec.groupSelector,
    autoscalerUsers: spec.autoscalerUsers ?? DEFAULT_AUTOSCALER_USERS,
    policy: compilePolicy(spec),
  }
}

/** @param spec validated */
export function compilePolicy(spec: ScaleUpGuardSpec): ScaleUpGuardPolicy {
  const { failure, backoff } = spec
  const { correctTarget, deleteLongUnregistered, shadow } = complete(SCALE_UP_GUARD_SPEC_SCHEMA, spec)
  return { ...compileFailure(failure), backoff: compileBackoff(backoff), correctTarget, deleteLongUnregistered, shadow }
}

function compileFailure(
  failure: FailureRules | undefined,
): Pick<ScaleUpGuardPolicy, 'conditionReasons' | 'minDurationMs' | 'noProviderIDMs' | 'noNodeMs'> {
  const { minDuration, noProviderIDFor, noNodeFor } = complete(fieldOf(SCALE_UP_GUARD_SPEC_SCHEMA, 'failure'), failure)
  return {
    conditionReasons: new Set(failure?.conditionReasons ?? DEFAULT_CONDITION_REASONS),
    minDurationMs: millis(minDuration),
    noProviderIDMs: millis(noProviderIDFor),
    noNodeMs: millis(noNodeFor),
  }
}

function compileBackoff(backoff: GuardBackoff | undefined): BackoffOptions {
  const { initial, max, resetAfter } = complete(fieldOf(SCALE_UP_GUARD_SPEC_SCHEMA, 'backoff'), backoff)
  return { initialMs: millis(initial), maxMs: Math.max(millis(initial), millis(max)), resetMs: millis(resetAfter) }
}

/** The schema admits only readable durations. */
function millis(text: string): number {
  return parseDuration(text) ?? 0
}
