// Which dispatch policy decides about a request: policies in order, the first whose rule matches; rules ORed, fields
// ANDed. A resource request is matched by groups, resources, names and namespaces, any other by nonResourceURLs alone.

import type { UserInfo } from '../api/user.ts'
import type { CompiledPolicy, CompiledRule } from './compiled-cluster.ts'
import { anyInList, inList, resourceInList } from './match-list.ts'
import type { RequestInfo } from './request-info.ts'

/** Indexes into spec.dispatchPolicies and its rules. */
export interface PolicyMatch {
  policy: number
  rule: number
}

/** Undefined when no policy matches: the request is refused with 403. */
export function matchPolicy(
  policies: readonly CompiledPolicy[],
  info: RequestInfo,
  user: UserInfo,
  userAgent: string,
): PolicyMatch | undefined {
  const combined = combinedResource(info)
  for (const policy of policies) {
    const rules = policy.rules
    for (let at = 0; at < rules.length; at++) {
      const rule = rules[at]
      if (rule !== undefined && matches(rule, info, combined, user, userAgent))
        return { policy: policy.index, rule: at }
    }
  }
  return undefined
}

export function ruleMatches(rule: CompiledRule, info: RequestInfo, user: UserInfo, userAgent: string): boolean {
  return matches(rule, info, combinedResource(info), user, userAgent)
}

function combinedResource(info: RequestInfo): string {
  return info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`
}

function matches(rule: CompiledRule, info: RequestInfo, combined: string, user: UserInfo, userAgent: string): boolean {
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
