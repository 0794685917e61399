// Who may use a cluster at all: spec.accessControl. `deny` is checked first; a non-empty `allow` refuses every caller it does not name.
// Authentication comes first, so this sees verified users.

import { parseIp } from '../../../kit/api/validation/ip-address.ts'
import { inAnyCidr } from '../../../kit/core/dial/cidr.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { CompiledAccess, CompiledAccessRule } from '../cluster/compiled-cluster.ts'
import { anyInList, inList } from './match-list.ts'

export interface AccessRefusal {
  /** Name of the deny rule; '' if it has none, or if no allow rule names the client. */
  rule: string
  list: 'deny' | 'allow'
}

/** undefined = admitted. Whether `access.shadow` turns a refusal into a warning is up to the caller. */
export function checkAccess(
  access: CompiledAccess,
  user: UserInfo,
  userAgent: string,
  remoteAddress: string,
): AccessRefusal | undefined {
  const address = usesAddresses(access) ? parseIp(remoteAddress) : undefined
  for (const rule of access.deny) {
    if (matches(rule, user, userAgent, address)) return { rule: rule.name, list: 'deny' }
  }
  if (access.allow.length === 0) return undefined
  for (const rule of access.allow) {
    if (matches(rule, user, userAgent, address)) return undefined
  }
  return { rule: '', list: 'allow' }
}

function usesAddresses(access: CompiledAccess): boolean {
  for (const rule of access.deny) if (rule.sources.length > 0) return true
  for (const rule of access.allow) if (rule.sources.length > 0) return true
  return false
}

function matches(
  rule: CompiledAccessRule,
  user: UserInfo,
  userAgent: string,
  address: Uint8Array | undefined,
): boolean {
  return (
    inList(rule.users, user.name) &&
    anyInList(rule.userGroups, user.groups) &&
    inList(rule.userAgents, userAgent) &&
    (rule.sources.length === 0 || (address !== undefined && inAnyCidr(rule.sources, address)))
  )
}
