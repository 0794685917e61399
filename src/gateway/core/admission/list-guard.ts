// spec.listGuard: refuses unlimited lists of resources known to be large.

import { refuse } from '../../../kit/core/refusal/refusal.ts'
import { checkList, isExemptFromGuard, listTooLargeMessage, mayRelearn } from '../policy/list-guard.ts'
import type { Admission, Filter } from './filter.ts'

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
