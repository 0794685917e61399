// The filters of the request path. Only the pipeline makes a Permit, and forward() takes nothing else.

import type { Admission } from '../../core/admission/filter.ts'
import { PURE_FILTERS } from '../../core/admission/order.ts'
import { type Permit as PermitOf, Pipeline } from '../../core/admission/pipeline.ts'
import type { Refusal } from '../../core/refusal/refusal.ts'
import type { LiveCluster } from '../../state/clusters.ts'

export interface AdmissionRequest extends Admission {
  readonly live: LiveCluster
}

export type Permit = PermitOf<AdmissionRequest>

const FILTERS = new Pipeline<AdmissionRequest>(PURE_FILTERS)

export function admit(request: AdmissionRequest): Permit | Refusal {
  return FILTERS.run(request)
}
