// The filter of scale-up guards in a gateway thread, with what it keeps and counts.

import type { MetricsRecorder } from '../../gateway/metrics/recorder.ts'
import type { SubjectFilters } from '../../gateway/request/exchange/decision.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import { GUARDS_IN_FORCE } from '../core/guard/guards-in-force.ts'
import { GUARDED_WRITES } from '../metrics/descriptors.ts'
import { ScaleUpGuardFilter } from '../request/scale-up-guard.ts'
import { ScaleUpGuardTable } from '../state/scale-up-guards.ts'

export interface GuardThread {
  readonly metrics: Pick<MetricsRecorder, 'add'>
  readonly topics: TopicChannel
}

export function guardFilters({ metrics, topics }: GuardThread): SubjectFilters {
  const guards = new ScaleUpGuardTable()
  topics.subscribe(GUARDS_IN_FORCE, (all) => guards.replace(all))
  return {
    'scale-up-guard': new ScaleUpGuardFilter({
      guards,
      counted: (cluster, guard, outcome) => metrics.add(GUARDED_WRITES, 1, cluster, guard, outcome),
    }),
  }
}
