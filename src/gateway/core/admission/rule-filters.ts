// Filters that only apply a rule of the object: nothing is taken for the request, and no call is made.

import { type RefusalCause, refuse } from '../../../kit/core/refusal/refusal.ts'
import type { DegradeMode } from '../../api/upstream-cluster/degrade-modes.ts'
import type { CompiledCluster } from '../cluster/compiled-cluster.ts'
import { checkAccess } from '../policy/access-list.ts'
import { checkDegrade, degradeMessage, effectiveMode } from '../policy/degrade.ts'
import { checkList, isExemptFromGuard, listTooLargeMessage, mayRelearn } from '../policy/list-guard.ts'
import { accessDeniedMessage, policyDeniedMessage } from '../policy/policy-messages.ts'
import type { Admission, Filter } from './filter.ts'

/** spec.accessControl: who may use the cluster at all. */
export const accessList: Filter<Admission> = {
  shadow: ({ cluster }) => cluster.access?.shadow ?? false,
  check({ cluster, user, userAgent, remoteAddress }) {
    if (cluster.access === undefined) return undefined
    const refusal = checkAccess(cluster.access, user, userAgent, remoteAddress)
    if (refusal === undefined) return undefined
    return refuse('access-denied', accessDeniedMessage(user, cluster.name, refusal), { rule: refusal.rule })
  },
}

/** The policy's own action: `Deny` refuses what it matches. */
export const dispatchAction: Filter<Admission> = {
  shadow: ({ policy }) => policy.shadow,
  check({ policy, rule: matched, user, info, cluster }) {
    if (!policy.deny) return undefined
    const rule = `dispatchPolicies[${policy.index}]`
    return refuse('policy-denied', policyDeniedMessage(user, info, cluster.name, policy.index, matched), { rule })
  },
}

/** spec.degrade: the incident switch. */
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

/** spec.listGuard: refuses unlimited lists of resources known to be large. */
export const listGuard: Filter<Admission> = {
  shadow: ({ cluster }) => cluster.listGuard?.shadow ?? false,
  check(admission) {
    const { list, cluster } = admission
    const guard = cluster.listGuard
    if (list === undefined || guard === undefined) return undefined
    const found = checkList(guard, list)
    if (found === undefined) return undefined
    if (found !== 'large' || list.size === undefined) {
      list.outcome = found === 'unknown' ? 'unknown' : 'passed'
      return undefined
    }
    const { info, user, userAgent, moment } = admission
    if (isExemptFromGuard(cluster, info, user, userAgent)) {
      list.outcome = 'exempt'
      return undefined
    }
    if (mayRelearn(list.size, moment.nowMs)) {
      list.size.relearnMs = moment.nowMs
      list.outcome = 'relearned'
      return undefined
    }
    list.outcome = guard.shadow ? 'shadow' : 'refused'
    const message = listTooLargeMessage(cluster.name, guard, info, user, userAgent, list.size, moment.nowMs)
    const cause = {
      reason: 'ListGuard',
      message: `${list.size.bytes} bytes`,
      field: 'spec.listGuard.maxBytesUnlimited',
    }
    // Never a client's name: the rule is a metrics label.
    return refuse('list-too-large', message, { rule: 'listGuard', causes: [cause] })
  },
}
