// What a filter of admission sees, and what it may leave behind.

import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { ListRequest } from '../../api/list-request.ts'
import type { CompiledCluster, CompiledPolicy } from '../cluster/compiled-cluster.ts'
import type { Limits } from '../limits/limits.ts'
import type { RequestInfo } from '../request/request-info.ts'
import type { Held } from './held.ts'

/** When something is decided. */
export interface Moment {
  /** Wall clock, milliseconds since the epoch: for expiry times. */
  readonly nowMs: number
  /** Monotonic milliseconds: for rates. */
  readonly monotonicMs: number
}

/** What the filters see of a request, and what they leave behind; the request path knows more (gateway/request/exchange/decision.ts). */
export interface Admission {
  /** The object in force when the request came; a change in the middle does not split a decision. */
  readonly cluster: CompiledCluster
  readonly limits: Limits
  readonly policy: CompiledPolicy
  /** Index of the rule that matched. */
  readonly rule: number
  readonly info: RequestInfo
  /** The user that the request runs as. */
  readonly user: UserInfo
  readonly userAgent: string
  readonly remoteAddress: string
  readonly isWatch: boolean
  /** The client wants the connection for another protocol. */
  readonly isUpgrade: boolean
  /** Of a list, or a watch that begins with one, where the cluster learns how large lists are; else undefined: it counts as one. */
  readonly list: ListRequest | undefined
  /** Another one after every wait. */
  readonly moment: Moment
  /** Filters that it has passed, in their order; the next one to be asked. Only the pipeline counts. */
  passed: number
  /** Set by flow control: the limit was reached, and it passed all the same. */
  reserved: boolean
  /** Filled by flow control: what to give back. */
  held: Held | undefined
  /** `Warning` texts of what would have refused, were it not in shadow mode. */
  warnings: readonly string[]
  /** `filter/rule` of the same. */
  shadow: readonly string[]
}

/**
 * A step of admission. Its name is its key in a set of filters, and one everywhere: shadow warning, log, docs heading.
 * @typeParam Later what `check` may return instead of an answer: a promise of one; never = it always answers at once
 */
export interface Filter<A, Later = never> {
  /** Whether the filter only counts and warns for this request. */
  shadow(admission: A): boolean
  /** undefined = it passes. */
  check(admission: A): Refusal | undefined | Later
}
