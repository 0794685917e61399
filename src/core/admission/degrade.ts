// spec.degrade: the switch for incidents.

import type { DegradeMode } from '../../api/upstream-cluster/degrade-modes.ts'
import type { CompiledCluster } from '../cluster/compiled-cluster.ts'
import { checkDegrade, degradeMessage, effectiveMode } from '../policy/degrade.ts'
import { isEviction } from '../policy/disruption.ts'
import { type Refusal, type RefusalCause, type RefusalReason, refuse } from '../refusal/refusal.ts'
import type { RequestInfo } from '../request/request-info.ts'
import type { Admission, Filter } from './filter.ts'

export const degrade: Filter<Admission> = {
  shadow: ({ cluster }) => cluster.degrade.shadow,
  check({ cluster, info, user, userAgent, moment: { nowMs } }) {
    const { degrade: setting } = cluster
    if (setting.mode === 'Off') return undefined
    if (checkDegrade(setting, info, user, userAgent, nowMs) !== 'refuse') return undefined
    const mode = effectiveMode(setting, nowMs)
    return refuseDegraded(mode === 'NoDisruption' ? disruptionReason(info) : 'degraded', cluster, mode)
  },
}

/** Of a request that disrupts what runs. */
function disruptionReason(info: RequestInfo): RefusalReason {
  return isEviction(info) ? 'eviction-refused' : 'disruption-refused'
}

/** Says mode, reason and expiry, each in a cause of its own for programs. */
function refuseDegraded(
  refused: RefusalReason,
  { degrade: { reason, expiresAt }, degrade: setting, name }: CompiledCluster,
  mode: DegradeMode,
): Refusal {
  const causes: RefusalCause[] = [{ reason: 'DegradeMode', message: mode, field: 'spec.degrade.mode' }]
  if (reason !== '') causes.push({ reason: 'DegradeReason', message: reason, field: 'spec.degrade.reason' })
  if (expiresAt !== '') causes.push({ reason: 'DegradeExpiry', message: expiresAt, field: 'spec.degrade.expiresAt' })
  return refuse(refused, degradeMessage(name, setting, mode), { rule: mode, causes })
}
