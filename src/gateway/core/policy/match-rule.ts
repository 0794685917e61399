// Matches one rule against one request.

import type { UserInfo } from '../../../kube/api/user.ts'
import type { CompiledRule } from '../cluster/compiled-cluster.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { anyInList, inList, resourceInList } from './match-list.ts'

/** Whether the rule matches; fields are ANDed. A path request is matched by nonResourceURLs in place of the resource. */
export function ruleMatches(rule: CompiledRule, info: RequestInfo, user: UserInfo, userAgent: string): boolean {
  return matchesCombined(rule, info, combinedResource(info), user, userAgent)
}

/** `pods` or `pods/exec`, as rules write it. */
export function combinedResource(info: RequestInfo): string {
  return info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`
}

/** `ruleMatches` for callers that check many rules: `combined` is combinedResource(info). */
function matchesCombined(
  rule: CompiledRule,
  info: RequestInfo,
  combined: string,
  user: UserInfo,
  userAgent: string,
): boolean {
  if (!inList(rule.verbs, info.verb)) return false
  const target = info.isResourceRequest
    ? resourceInList(rule.resources, combined, info.subresource) &&
      inList(rule.apiGroups, info.apiGroup) &&
      inList(rule.resourceNames, info.name) &&
      inList(rule.namespaces, info.namespace)
    : inList(rule.nonResourceURLs, info.path)
  return (
    target &&
    inList(rule.users, user.name) &&
    anyInList(rule.userGroups, user.groups) &&
    inList(rule.userAgents, userAgent)
  )
}
