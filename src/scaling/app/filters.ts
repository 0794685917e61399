// The filters of scaling in a gateway thread, with what they keep, count and report.

import type { MetricsRecorder } from '../../gateway/metrics/recorder.ts'
import type { SubjectFilters } from '../../gateway/request/exchange/decision.ts'
import { type LedgerLine, ThreadScaleDowns } from '../../protection/app/thread-ledger.ts'
import { SCALE_DOWNS, SCALE_WRITES } from '../metrics/descriptors.ts'
import { createScaleDownPolicyFilter } from '../request/scale-down-policy.ts'
import { ScaleProtectionFilter } from '../request/scale-protection.ts'
import { ScaleDownPolicies } from '../state/scale-down-policies.ts'
import { POLICIES_IN_FORCE, SCALED_DOWN } from './topics.ts'

export interface ScalingThread extends LedgerLine {
  readonly metrics: Pick<MetricsRecorder, 'add'>
}

export function scalingFilters({ metrics, topics, questions }: ScalingThread): SubjectFilters {
  const policies = new ScaleDownPolicies()
  topics.subscribe(POLICIES_IN_FORCE, (all) => policies.replace(all))
  return {
    'scale-protection': new ScaleProtectionFilter({
      gate: new ThreadScaleDowns({ topics, questions }),
      policies,
      counted: (cluster, outcome, reason) => metrics.add(SCALE_WRITES, 1, cluster, outcome, reason),
    }),
    'scale-down-policy': createScaleDownPolicyFilter({
      policies,
      report(report) {
        metrics.add(SCALE_DOWNS, 1, report.cluster, report.outcome)
        topics.publish(SCALED_DOWN, report)
      },
    }),
  }
}
