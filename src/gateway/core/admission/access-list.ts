// spec.accessControl: who may use the cluster at all.

import { refuse } from '../../../kit/core/refusal/refusal.ts'
import { checkAccess } from '../policy/access-list.ts'
import { accessDeniedMessage } from '../policy/policy-messages.ts'
import type { Admission, Filter } from './filter.ts'

export const accessList: Filter<Admission> = {
  shadow: ({ cluster }) => cluster.access?.shadow ?? false,
  check({ cluster, user, userAgent, remoteAddress }) {
    if (cluster.access === undefined) return undefined
    const refusal = checkAccess(cluster.access, user, userAgent, remoteAddress)
    if (refusal === undefined) return undefined
    return refuse('access-denied', accessDeniedMessage(user, cluster.name, refusal), { rule: refusal.rule })
  },
}
