// Who a caller is in a member. Names mean what the cluster means that gave them: a member has to trust those of the federated cluster, and what a cluster
// names itself (service accounts, nodes, its own components and groups) is known nowhere else.

import { GROUP_AUTHENTICATED, type UserInfo } from '../../kube/api/user.ts'

/** Names that clusters give themselves: system:serviceaccount:NAMESPACE:NAME, system:node:NAME, system:anonymous, system:masters ... */
const OWN_PREFIX = 'system:'

/**
 * The same user, with the groups that a cluster does not give itself. That of the super users, system:masters, is one that it does: no authorizer is asked
 * of its members.
 * @returns undefined = no user there
 */
export function userInMember(user: UserInfo, trustsUsers: boolean): UserInfo | undefined {
  if (!trustsUsers || user.name === '' || user.name.startsWith(OWN_PREFIX)) return undefined
  // Everyone who has a name.
  const groups = [...user.groups.filter((group) => !group.startsWith(OWN_PREFIX)), GROUP_AUTHENTICATED]
  return { ...user, groups }
}
