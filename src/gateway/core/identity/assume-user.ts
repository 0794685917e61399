// The user that authentication would most likely produce for a name, for requests without a credential (explain).

import {
  ANONYMOUS_USER,
  GROUP_AUTHENTICATED,
  GROUP_SERVICE_ACCOUNTS,
  GROUP_UNAUTHENTICATED,
  SERVICE_ACCOUNT_PREFIX,
  type UserInfo,
} from '../../../kube/api/user.ts'

/**
 * @param user '' is anonymous
 * @param groups undefined = those that Kubernetes assigns to this kind of user
 */
export function assumeUser(user: string, groups: readonly string[] | undefined): UserInfo {
  const name = user === '' ? ANONYMOUS_USER : user
  const all = [...(groups ?? groupsByName(name))]
  // Like the group adder (apiserver/pkg/authentication/group/authenticated_group_adder.go).
  if (name === ANONYMOUS_USER) {
    if (all.length === 0) all.push(GROUP_UNAUTHENTICATED)
  } else if (!all.includes(GROUP_AUTHENTICATED)) all.push(GROUP_AUTHENTICATED)
  return { name, uid: '', groups: all, extra: {} }
}

/** apiserver/pkg/authentication/serviceaccount/util.go */
function groupsByName(name: string): readonly string[] {
  if (!name.startsWith(SERVICE_ACCOUNT_PREFIX)) return []
  const [namespace = '', account = '', more] = name.slice(SERVICE_ACCOUNT_PREFIX.length).split(':')
  if (namespace === '' || account === '' || more !== undefined) return []
  return [GROUP_SERVICE_ACCOUNTS, `${GROUP_SERVICE_ACCOUNTS}:${namespace}`]
}
