// Weight of a user's share relative to others: spec.shares.weights.

import type { UserInfo } from '../../../kube/api/user.ts'
import type { CompiledWeight } from '../cluster/compiled-cluster.ts'
import { anyInList, inList } from '../policy/match-list.ts'

/** For users that no rule matches. */
export const USUAL_WEIGHT = 1

/** The first matching rule decides. */
export function shareWeight(
  weights: readonly CompiledWeight[],
  { name, groups }: Pick<UserInfo, 'name' | 'groups'>,
): number {
  for (const { weight, users, userGroups } of weights)
    if (inList(users, name) && anyInList(userGroups, groups)) return weight
  return USUAL_WEIGHT
}
