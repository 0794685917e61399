// spec.degrade: the switch for incidents.

import { checkDegrade, degradeMessage, effectiveMode } from '../policy/degrade.ts'
import { type RefusalCause, refuse } from '../refusal/refusal.ts'
import type { Admission, Filter } from './filter.ts'

export const degrade: Filter<Admission> = {
  shadow: ({ cluster }) => cluster.degrade.shadow,
  check({ cluster, info, user, userAgent, moment: { nowMs } }) {
    const { degrade: setting, name } = cluster
    if (setting.mode === 'Off') return undefined
    if (checkDegrade(setting, info, user, userAgent, nowMs) !== 'refuse') return undefined
    const mode = effectiveMode(setting, nowMs)
    const causes: RefusalCause[] = [{ reason: 'DegradeMode', message: mode, field: 'spec.degrade.mode' }]
    if (setting.reason !== '')
      causes.push({ reason: 'DegradeReason', message: setting.reason, field: 'spec.degrade.reason' })
    if (setting.expiresAt !== '') {
      causes.push({ reason: 'DegradeExpiry', message: setting.expiresAt, field: 'spec.degrade.expiresAt' })
    }
    return refuse('degraded', degradeMessage(name, setting, mode), { rule: mode, causes })
  },
}
