// The subjects that can be left out of the program: one import and one row each, and no other file imports them. Their order is that of their rows
// in the table of metrics, which is thereby the same in all threads, whatever modules they have loaded before.

import { CACHE } from '../../cache/subject.ts'
import { FEDERATION } from '../../federation/subject.ts'
import { table } from '../../gateway/metrics/descriptors.ts'
import { GRANTS } from '../../grants/subject.ts'
import { INCIDENTS } from '../../incidents/subject.ts'
import { INSIGHT } from '../../insight/subject.ts'
import { POD_PROTECTION } from '../../protection/subject.ts'
import { SCALE_UP_GUARD } from '../../scale-up-guard/subject.ts'
import { SCALING } from '../../scaling/subject.ts'
import { SESSIONS } from '../../sessions/subject.ts'
import { TRACES } from '../../traces/subject.ts'
import type { Subject } from './subject.ts'

export const SUBJECTS: readonly Subject[] = [
  POD_PROTECTION, // PodProtector, spec.podProtection, `portcullis protect`, the settings --protection-*
  SCALE_UP_GUARD, // ScaleUpGuard
  SCALING, // ScaleDownPolicy, spec.scaleProtection, `portcullis scale`
  CACHE, // spec.cache
  FEDERATION, // spec.members, spec.federation
  GRANTS, // AccessGrant, `portcullis access`, the settings --access-*
  SESSIONS, // spec.audit.sessions, `portcullis play`, the settings --session-recording-*
  INCIDENTS, // spec.degrade.{auto,recovery}, modes NoDisruption and Limited, `portcullis degrade`
  INSIGHT, // top talkers, taps, users seen, the dashboard: `portcullis top`, `sessions` and `tap`, --top-metrics
  TRACES, // the settings --tracing-*
]

for (const { metrics } of SUBJECTS) if (metrics !== undefined) table.append(metrics)
