// The filter of incidents in a gateway thread. It keeps nothing: what it counts is in the memory of the cluster.

import type { SubjectFilters } from '../../gateway/request/exchange/decision.ts'
import { disruption } from '../request/disruption.ts'

export function incidentFilters(): SubjectFilters {
  return {
    disruption,
  }
}
