// The filters of the request path: those of core, and those that need to call upstream.

import { disruption } from '../../incidents/request/disruption.ts'
import type { Refusal } from '../../kit/core/refusal/refusal.ts'
import { protection } from '../../protection/request/protect.ts'
import { scaleUpGuard } from '../../scale-up-guard/request/scale-up-guard.ts'
import { scaleDownPolicy } from '../../scaling/request/scale-down-policy.ts'
import { scaleProtection } from '../../scaling/request/scale-protection.ts'
import { type FilterSet, PURE_FILTERS } from '../core/admission/order.ts'
import { Pipeline } from '../core/admission/pipeline.ts'
import type { Decision, Permit, Recheck } from './exchange/decision.ts'

type Later = Promise<Refusal | undefined>

const SET: FilterSet<Decision, Later> = {
  ...PURE_FILTERS,
  disruption,
  'scale-up-guard': scaleUpGuard,
  protection,
  'scale-protection': scaleProtection,
  'scale-down-policy': scaleDownPolicy,
}
const FILTERS = new Pipeline<Decision, Later>(SET)

/** Returns a promise if a filter has to wait; pass its result to `resumeAdmission`. */
export function admit(decision: Decision): Permit | Refusal | Later {
  return FILTERS.run(decision)
}

export function resumeAdmission(decision: Decision, refusal: Refusal | undefined): Permit | Refusal | Later {
  return FILTERS.resume(decision, refusal)
}

/** Restarts at the filter that asked for the recheck; pass the result to `resumeAdmission`. */
export function recheck(decision: Decision, { filter, check }: Recheck): Later {
  decision.recheck = undefined
  FILTERS.rewind(decision, filter)
  return check()
}
