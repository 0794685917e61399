// ScaleUpGuard's row of the scheme.

import type { FieldError } from '../../kit/api/json/field-error.ts'
import { type Loose, looseView } from '../../kit/api/json/object-shape.ts'
import { FieldErrors, reportable, shown } from '../../kit/api/validation/field-errors.ts'
import { checkLabelSelector } from '../../kit/api/validation/label-selector-checks.ts'
import { isObjectName, MAX_DNS_NAME } from '../../kit/api/validation/name-syntax.ts'
import { SCALE_GROUP } from '../../kube/api/own-names.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import type { FailureRules, GuardBackoff, ScaleUpGuard } from './scale-up-guard.ts'
import { DURATION, SCALE_UP_GUARD_KIND, SCALE_UP_GUARD_SCHEMA } from './schema.ts'

export const SCALE_UP_GUARDS: ResourceKind = {
  group: SCALE_GROUP,
  version: 'v1alpha1',
  kind: SCALE_UP_GUARD_KIND,
  listKind: 'ScaleUpGuardList',
  plural: 'scaleupguards',
  singular: 'scaleupguard',
  shortNames: ['sug'],
  categories: [],
  namespaced: false,
  hasStatus: true,
  hasGeneration: true,
  schema: SCALE_UP_GUARD_SCHEMA,
  columns: [
    {
      name: 'Management',
      type: 'string',
      description: 'UpstreamCluster that has the Machines.',
      jsonPath: '.spec.clusterRef.management',
    },
    { name: 'Groups', type: 'integer', description: 'Groups that are guarded.', jsonPath: '.status.groupCount' },
    {
      name: 'Backed off',
      type: 'integer',
      description: 'Groups whose scale-ups are refused.',
      jsonPath: '.status.backedOffCount',
    },
    { name: 'Shadow', type: 'boolean', description: 'Whether it only reports.', jsonPath: '.spec.shadow' },
    {
      name: 'Ready',
      type: 'string',
      description: 'Whether it observes the groups.',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
    },
    { name: 'Age', type: 'date', description: 'When it was created.', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: [],
  check: (object) => checkScaleUpGuard(object),
}

/** What the schema cannot express. Returns every error and warning. Takes any JSON value and never throws; schema errors are not repeated. */
export function checkScaleUpGuard(object: unknown): readonly FieldError[] {
  const out = new FieldErrors()
  const { spec } = (looseView(SCALE_UP_GUARD_SCHEMA, object) ?? {}) as Loose<ScaleUpGuard>
  if (spec === undefined) return out.found
  const { clusterRef = {}, group, groupSelector, autoscalerUsers, failure = {}, backoff = {} } = spec
  checkName(clusterRef.management, 'spec.clusterRef.management', out)
  checkName(clusterRef.workload, 'spec.clusterRef.workload', out)
  checkName(group, 'spec.group', out)
  if (groupSelector !== undefined) checkLabelSelector(groupSelector, 'spec.groupSelector', out)
  if (autoscalerUsers?.length === 0) {
    out.warning('spec.autoscalerUsers', 'is empty: no user is refused', 'name the user of the autoscaler, or remove it')
  }
  checkFailure(failure, out)
  checkBackoff(backoff, out)
  return reportable(out.found, out.more)
}

/** The schema reports names that are too long. */
function checkName(name: string | undefined, path: string, out: FieldErrors): void {
  if (name === undefined || name === '' || name.length > MAX_DNS_NAME || isObjectName(name)) return
  out.invalid(path, `${shown(name)} is not a valid name`, 'use lower-case letters, digits, - and .')
}

function checkFailure(failure: Loose<FailureRules>, out: FieldErrors): void {
  checkDuration(failure.minDuration, 'spec.failure.minDuration', 0, out)
  // Every new Machine lacks both for a while.
  checkDuration(failure.noProviderIDFor, 'spec.failure.noProviderIDFor', SHORTEST, out)
  checkDuration(failure.noNodeFor, 'spec.failure.noNodeFor', SHORTEST, out)
  if (failure.conditionReasons?.length !== 0) return
  const message = 'is empty: Machines fail only by not appearing in time'
  out.warning('spec.failure.conditionReasons', message, 'name reasons of your infrastructure provider, or remove it')
}

/** Seconds. */
const SHORTEST = 1
/** A year: longer ones could exceed the range of dates. */
const LONGEST = 8760 * 3600

/** @returns seconds; undefined = absent or invalid */
function checkDuration(text: string | undefined, path: string, shortest: number, out: FieldErrors): number | undefined {
  if (text === undefined) return undefined
  const seconds = DURATION_PATTERN.test(text) ? secondsOf(text) : undefined
  if (seconds === undefined) out.invalid(path, `${shown(text)} is not a duration`, 'write one like 90s, 4m30s or 3h')
  else if (seconds < shortest) out.invalid(path, `${text} is too short`, `write at least ${shortest}s`)
  else if (seconds > LONGEST) out.invalid(path, `${text} is too long`, 'write at most 8760h')
  else return seconds
  return undefined
}

const DURATION_PATTERN = new RegExp(DURATION)

/** The autoscaler itself backs off for 5 minutes after its first failure; a backoff that ends later would refuse its next attempt. */
const AUTOSCALER_INITIAL = 5 * 60

function checkBackoff({ initial, max, resetAfter }: Loose<GuardBackoff>, out: FieldErrors): void {
  const first = checkDuration(initial, 'spec.backoff.initial', SHORTEST, out)
  const longest = checkDuration(max, 'spec.backoff.max', SHORTEST, out)
  checkDuration(resetAfter, 'spec.backoff.resetAfter', SHORTEST, out)
  if (first !== undefined && longest !== undefined && longest < first) {
    out.invalid('spec.backoff.max', `${max ?? ''} is less than initial, ${initial ?? ''}`, 'write at least initial')
  }
  if (first !== undefined && first >= AUTOSCALER_INITIAL) {
    const message = `${initial ?? ''} ends after the autoscaler's own backoff (5m): the two refuse alternately`
    out.warning('spec.backoff.initial', message, 'write less than --initial-node-group-backoff-duration')
  }
}

const SECONDS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600 }

/** For a duration that fits the pattern. */
function secondsOf(text: string): number {
  let sum = 0
  for (const [, number = '', unit = ''] of text.matchAll(/(\d+\.?\d*|\.\d+)(ms|s|m|h)/g)) {
    sum += Number(number) * (SECONDS[unit] ?? 0)
  }
  return sum
}
