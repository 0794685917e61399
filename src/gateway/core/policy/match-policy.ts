// Which dispatch policy decides about a request: policies in order, the first whose rule matches; rules are ORed, fields ANDed. A resource
// request is matched by groups, resources, names and namespaces, any other by nonResourceURLs alone.

import type { UserInfo } from '../../../kube/api/user.ts'
import type { CompiledPolicy } from '../cluster/compiled-cluster.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { PolicyIndex, type PolicyMatch } from './match-index.ts'

/** Built on first use: a compiled cluster is plain data, so that it can be posted to a thread. */
const indexes = new WeakMap<readonly CompiledPolicy[], PolicyIndex>()

/** undefined = no policy matches: the request is refused with 403. */
export function matchPolicy(
  policies: readonly CompiledPolicy[],
  info: RequestInfo,
  user: UserInfo,
  userAgent: string,
): PolicyMatch | undefined {
  let index = indexes.get(policies)
  if (index === undefined) {
    index = new PolicyIndex(policies)
    indexes.set(policies, index)
  }
  return index.find(info, user, userAgent)
}
