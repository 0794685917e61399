// How large the share of a user is beside those of others: spec.shares.weights.

import type { UserInfo } from '../../../kube/api/user.ts'
import type { CompiledWeight } from '../cluster/compiled-cluster.ts'
import { anyInList, inList } from '../policy/match-list.ts'

/** Of all users that no rule names. */
export const USUAL_WEIGHT = 1

/** The first rule that matches decides. */
export function weightOf(
  weights: readonly CompiledWeight[],
  { name, groups }: Pick<UserInfo, 'name' | 'groups'>,
): number {
  for (const { weight, users, userGroups } of weights)
    if (inList(users, name) && anyInList(userGroups, groups)) return weight
  return USUAL_WEIGHT
}
