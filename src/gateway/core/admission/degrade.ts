// spec.degrade: the incident switch.

import { type RefusalCause, refuse } from '../../../kit/core/refusal/refusal.ts'
import type { DegradeMode } from '../../api/upstream-cluster/degrade-modes.ts'
import type { CompiledCluster } from '../cluster/compiled-cluster.ts'
import { checkDegrade, degradeMessage, effectiveMode } from '../policy/degrade.ts'
import type { Admission, Filter } from './filter.ts'

export const degrade: Filter<Admission> = {
  shadow: ({ cluster }) => cluster.degrade.shadow,
  check({ cluster, info, user, userAgent, isUpgrade, moment: { nowMs } }) {
    const { degrade: setting, name } = cluster
    // The filter `disruption` refuses what disrupts: it reads bodies, and a dry run disrupts nothing.
    if (setting.mode === 'Off' || setting.guardsDisruption) return undefined
    if (checkDegrade(setting, info, user, userAgent, nowMs, isUpgrade) !== 'refuse') return undefined
    const mode = effectiveMode(setting, nowMs)
    return refuse('degraded', degradeMessage(name, setting, mode), { rule: mode, causes: degradeCauses(cluster, mode) })
  },
}

/** Mode, reason and expiry as separate causes, for programs. */
export function degradeCauses({ degrade: { reason, expiresAt } }: CompiledCluster, mode: DegradeMode): RefusalCause[] {
  const causes: RefusalCause[] = [{ reason: 'DegradeMode', message: mode, field: 'spec.degrade.mode' }]
  if (reason !== '') causes.push({ reason: 'DegradeReason', message: reason, field: 'spec.degrade.reason' })
  if (expiresAt !== '') causes.push({ reason: 'DegradeExpiry', message: expiresAt, field: 'spec.degrade.expiresAt' })
  return causes
}
