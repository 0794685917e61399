// The policy's own action: `Deny` refuses what it matches.

import { refuse } from '../../../kit/core/refusal/refusal.ts'
import { policyDeniedMessage } from '../policy/policy-messages.ts'
import type { Admission, Filter } from './filter.ts'

export const dispatchAction: Filter<Admission> = {
  shadow: ({ policy }) => policy.shadow,
  check({ policy, rule: matched, user, info, cluster }) {
    if (!policy.deny) return undefined
    const rule = `dispatchPolicies[${policy.index}]`
    return refuse('policy-denied', policyDeniedMessage(user, info, cluster.name, policy.index, matched), { rule })
  },
}
