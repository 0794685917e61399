// Registers scaling. No other file of the program imports it (program/subjects/subjects.ts).

import { SCALE_DOWN_POLICIES } from './api/scale-down-policy-kind.ts'
import { addScale } from './cli/program.ts'
import { SCALING_METRICS } from './metrics/descriptors.ts'

export const SCALING = {
  kinds: [SCALE_DOWN_POLICIES],
  fields: ['scaleProtection'] as const,
  metrics: SCALING_METRICS,
  addCommands: addScale,
  filters: async () => (await import('./app/filters.ts')).scalingFilters,
  led: async () => (await import('./app/scale-downs.ts')).startScaleDowns,
}
