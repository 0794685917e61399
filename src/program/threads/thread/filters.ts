// The filters of the path of a request: those of the gateway, and what each subject adds to it.

import { PURE_FILTERS } from '../../../gateway/core/admission/order.ts'
import { Pipeline } from '../../../gateway/core/admission/pipeline.ts'
import type { Decision, Filters, SubjectFilters } from '../../../gateway/request/exchange/decision.ts'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'

/** @param subjects filters of those that can be left out (program/subjects/subjects.ts) */
export function createFilters(subjects: readonly SubjectFilters[]): Filters {
  let added: SubjectFilters = {}
  for (const filters of subjects) added = { ...added, ...filters }
  return new Pipeline<Decision, Promise<Refusal | undefined>>({
    ...PURE_FILTERS,
    ...added,
  })
}
