// What scale-up guards add to the program, which has no other import of them (program/subjects/subjects.ts).

import { SCALE_UP_GUARDS } from './api/scale-up-guard-kind.ts'
import { GUARD_METRICS } from './metrics/descriptors.ts'

export const SCALE_UP_GUARD = {
  kinds: [SCALE_UP_GUARDS],
  metrics: GUARD_METRICS,
  filters: async () => (await import('./app/filters.ts')).guardFilters,
  component: async () => (await import('./app/scale-up-guards.ts')).createScaleUpGuards,
}
