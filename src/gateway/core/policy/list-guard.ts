// spec.listGuard: which lists are too large to serve at once, and what a refused client reads.

import type { UserInfo } from '../../../kube/api/user.ts'
import type { ListRequest, ListSize } from '../../api/list-request.ts'
import type { CompiledCluster, CompiledListGuard } from '../cluster/compiled-cluster.ts'
import { isUnlimited } from '../list-cost/list-request.ts'
import { isNarrow } from '../list-cost/selector-shape.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { isExempt } from './degrade.ts'
import { ruleMatches } from './match-rule.ts'

/** A size this old still counts, but one list may pass to refresh it. */
export const RELEARN_MS: number = 60 * 60_000
/** How long that list has before another one may pass. */
const RELEARNING_MS = 60_000
const GROUP_NODES = 'system:nodes'
const USERS: ReadonlySet<string> = new Set([
  'system:apiserver',
  'system:kube-controller-manager',
  'system:kube-scheduler',
])
/** With --use-service-account-credentials; covers the namespace controller and the garbage collector, which list what they delete. */
const CONTROLLERS = 'system:serviceaccount:kube-system:'
const CONTROLLERS_AGENT = 'kube-controller-manager/'
const MAX_SHOWN = 256

/**
 * undefined = the guard does not apply. `large`: refuse it, unless the caller is exempt.
 *
 * A list with a selector that picks some objects passes: the size for another value of the selector says nothing about this one.
 */
export function checkList(guard: CompiledListGuard, list: ListRequest): 'passed' | 'unknown' | 'large' | undefined {
  if (!isUnlimited(list)) return undefined
  if (list.size === undefined) return 'unknown'
  return list.bytes > guard.maxBytesUnlimited && !isNarrow(list.shape) ? 'large' : 'passed'
}

/** Nodes, controllers, and users named by the object. */
export function isExemptFromGuard(
  { listGuard, degrade }: CompiledCluster,
  info: RequestInfo,
  user: UserInfo,
  userAgent: string,
): boolean {
  if (USERS.has(user.name) || user.groups.includes(GROUP_NODES)) return true
  if (user.name.startsWith(CONTROLLERS) && userAgent.startsWith(CONTROLLERS_AGENT)) return true
  if (isExempt(degrade, info, user, userAgent)) return true
  for (const rule of listGuard?.exempt ?? []) if (ruleMatches(rule, info, user, userAgent)) return true
  return false
}

/**
 * Whether this list, too large by an old observation, passes to refresh it.
 * @param nowMs milliseconds since the epoch
 */
export function mayRelearn({ seenMs, relearnMs }: ListSize, nowMs: number): boolean {
  // Clocks may be set in either direction.
  return Math.abs(nowMs - seenMs) >= RELEARN_MS && Math.abs(nowMs - relearnMs) >= RELEARNING_MS
}

/** The message of a refusal: the user, the list, its size and the age of that observation, and what to do instead. */
export function listTooLargeMessage(
  cluster: string,
  guard: CompiledListGuard,
  info: RequestInfo,
  user: UserInfo,
  userAgent: string,
  size: ListSize,
  nowMs: number,
): string {
  const agent = userAgent === '' ? '' : ` (${cut(userAgent)})`
  const resource = info.apiGroup === '' ? info.resource : `${info.resource}.${info.apiGroup}`
  const where = info.namespace === '' ? '' : ` in namespace "${cut(info.namespace)}"`
  const items = size.items > 0 ? `, ${size.items} items` : ''
  return (
    `User "${cut(user.name)}"${agent} lists all "${cut(resource)}"${where} of cluster "${cluster}" without a limit: ` +
    `${megabytes(size.bytes)}${items}, as of ${ageText(nowMs - size.seenMs)} ago, and spec.listGuard allows ` +
    `${megabytes(guard.maxBytesUnlimited)}; list with limit (500) and continue, watch, or set resourceVersion=0`
  )
}

function cut(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`
}

/** 12 s, 5 min, 3 h. */
function ageText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`
}
