// The texts of refusals, in one place: the gateway sends them and `portcullis explain` predicts them. They follow kube-apiserver's "is
// forbidden" wording where a client may look for it. See also degradeMessage.

import type { UserInfo } from '../../../kube/api/user.ts'
import { MAX_TARGET_LENGTH, type RequestInfo } from '../request/request-info.ts'
import type { AccessRefusal } from './access-list.ts'

/** @param asked the host name, or the path prefix; '' = neither */
export function unknownClusterMessage(asked: string): string {
  if (asked === '')
    return 'no host is given and no cluster is the default: name a host, or a target under /clusters/<name>/'
  return `no cluster is served under "${asked}"`
}

/** Used by the gateway and by the embedded API server. @param length of the request target, in characters */
export function targetTooLongMessage(length: number): string {
  return `the request target has ${length} characters, and the limit of this server is ${MAX_TARGET_LENGTH}: split it into several requests`
}

export function noPolicyMessage(user: UserInfo, info: RequestInfo, cluster: string): string {
  return `${forbidden(user, info)}: no dispatch policy of cluster "${cluster}" matches`
}

/** `policy` and `rule` are indexes into spec.dispatchPolicies and the policy's rules. */
export function policyDeniedMessage(
  user: UserInfo,
  info: RequestInfo,
  cluster: string,
  policy: number,
  rule: number,
): string {
  return `${forbidden(user, info)}: denied by dispatchPolicies[${policy}].rules[${rule}] of cluster "${cluster}"`
}

export function accessDeniedMessage(user: UserInfo, cluster: string, refusal: AccessRefusal): string {
  const subject = `User "${user.name}" may not use cluster "${cluster}"`
  if (refusal.list === 'allow') return `${subject}: no rule of its accessControl.allow list names this client`
  return `${subject}: denied by ${refusal.rule === '' ? 'a rule' : `rule "${refusal.rule}"`} of its accessControl.deny list`
}

/** Worded like kube-apiserver's authorisation filter (apiserver/pkg/endpoints/handlers/responsewriters/errors.go). */
function forbidden(user: UserInfo, info: RequestInfo): string {
  if (!info.isResourceRequest) return `forbidden: User "${user.name}" cannot ${info.verb} path "${info.path}"`
  const resource = info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`
  const group = info.apiGroup === '' ? info.resource : `${info.resource}.${info.apiGroup}`
  const object = info.name === '' ? group : `${group} "${info.name}"`
  const scope = info.namespace === '' ? 'at the cluster scope' : `in the namespace "${info.namespace}"`
  return (
    `${object} is forbidden: User "${user.name}" cannot ${info.verb} resource "${resource}" ` +
    `in API group "${info.apiGroup}" ${scope}`
  )
}
