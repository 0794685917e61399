// What can be wrong with a ScaleUpGuard beyond its schema.

import type { FieldError } from '../kube/field-error.ts'
import { type Loose, looseView } from '../kube/object-shape.ts'
import { checkLabelSelector } from '../pod-protector/label-selector-checks.ts'
import { FieldErrors, reportable } from '../validation/field-errors.ts'
import type { FailureRules, GuardBackoff, ScaleUpGuard } from './scale-up-guard.ts'
import { SCALE_UP_GUARD_SCHEMA } from './schema.ts'

/** Every error and warning. Takes any JSON value and never throws; what the schema finds is not reported again. */
export function checkScaleUpGuard(object: unknown): readonly FieldError[] {
  const out = new FieldErrors()
  const { spec } = (looseView(SCALE_UP_GUARD_SCHEMA, object) ?? {}) as Loose<ScaleUpGuard>
  if (spec === undefined) return out.found
  const { groupSelector, autoscalerUsers, failure = {}, backoff = {} } = spec
  if (groupSelector !== undefined) checkLabelSelector(groupSelector, 'spec.groupSelector', out)
  if (autoscalerUsers?.length === 0) {
    out.warning('spec.autoscalerUsers', 'is empty: nobody is refused', 'name the user of the autoscaler, or remove it')
  }
  checkFailure(failure, out)
  checkBackoff(backoff, out)
  return reportable(out.found)
}

function checkFailure({ conditionReasons }: Loose<FailureRules>, out: FieldErrors): void {
  if (conditionReasons?.length !== 0) return
  const message = 'is empty: Machines fail only by silence'
  out.warning('spec.failure.conditionReasons', message, 'name reasons of your infrastructure provider, or remove it')
}

/** The autoscaler refuses by itself, for 5 minutes after its first failure: whoever ends later refuses its next try. */
const AUTOSCALER_INITIAL = 5 * 60

function checkBackoff({ initial, max }: Loose<GuardBackoff>, out: FieldErrors): void {
  const [first, longest] = [secondsOf(initial), secondsOf(max)]
  if (first !== undefined && longest !== undefined && longest < first) {
    out.invalid('spec.backoff.max', `${max ?? ''} is less than initial, ${initial ?? ''}`, 'write at least initial')
  }
  if (first !== undefined && first >= AUTOSCALER_INITIAL) {
    const message = `${initial ?? ''} ends after the autoscaler's own backoff (5m): the two refuse in turns`
    out.warning('spec.backoff.initial', message, 'write less than --initial-node-group-backoff-duration')
  }
}

const SECONDS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600 }

/** Of a duration that fits the schema. */
function secondsOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  let sum = 0
  for (const [, number = '', unit = ''] of text.matchAll(/(\d+\.?\d*|\.\d+)(ms|s|m|h)/g)) {
    sum += Number(number) * (SECONDS[unit] ?? 0)
  }
  return sum
}
