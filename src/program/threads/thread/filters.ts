// The filters of the path of a request: those of the gateway, and what each subject adds to it.

import { PURE_FILTERS } from '../../../gateway/core/admission/order.ts'
import { Pipeline } from '../../../gateway/core/admission/pipeline.ts'
import type { Decision, Filters } from '../../../gateway/request/exchange/decision.ts'
import { disruption } from '../../../incidents/request/disruption.ts'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import { protection } from '../../../protection/request/protect.ts'
import { scaleUpGuard } from '../../../scale-up-guard/request/scale-up-guard.ts'
import { scaleDownPolicy } from '../../../scaling/request/scale-down-policy.ts'
import { scaleProtection } from '../../../scaling/request/scale-protection.ts'

export const FILTERS: Filters = new Pipeline<Decision, Promise<Refusal | undefined>>({
  ...PURE_FILTERS,
  disruption,
  'scale-up-guard': scaleUpGuard,
  protection,
  'scale-protection': scaleProtection,
  'scale-down-policy': scaleDownPolicy,
})
