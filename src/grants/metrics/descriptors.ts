// Metrics of access grants: rows of the table of all threads (gateway/metrics/descriptors.ts), to which program/subjects/subjects.ts adds them.

import { type Metric, SubjectMetrics } from '../../gateway/metrics/metric.ts'

export const GRANT_METRICS = new SubjectMetrics()

export const OPEN_GRANTS: Metric<[string]> = GRANT_METRICS.gauge(
  'access_grants',
  ['phase'],
  'Access grants that have not ended, by phase',
)
export const GRANTS_CHANGED: Metric<[string]> = GRANT_METRICS.counter(
  'access_grant_changes_total',
  ['change'],
  'Access grants that came into force or ended',
)
