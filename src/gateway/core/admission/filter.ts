// Input and results of admission filters.

import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { ListRequest } from '../../api/list-request.ts'
import type { CompiledCluster, CompiledPolicy } from '../cluster/compiled-cluster.ts'
import type { Limits } from '../limits/limits.ts'
import type { RequestInfo } from '../request/request-info.ts'
import type { Held } from './held.ts'

/** When a decision is made. */
export interface Moment {
  /** Wall clock, milliseconds since the epoch: for expiry times. */
  readonly nowMs: number
  /** Monotonic milliseconds: for rates. */
  readonly monotonicMs: number
}

/** The part of a request that filters see, and their results; the request path knows more (gateway/request/exchange/decision.ts). */
export interface Admission {
  /** The object in force when the request arrived; a change midway does not split a decision. */
  readonly cluster: CompiledCluster
  readonly limits: Limits
  readonly policy: CompiledPolicy
  /** Index of the rule that matched. */
  readonly rule: number
  readonly info: RequestInfo
  /** The effective user of the request. */
  readonly user: UserInfo
  readonly userAgent: string
  readonly remoteAddress: string
  readonly isWatch: boolean
  /** The client wants to upgrade the connection. */
  readonly isUpgrade: boolean
  /** For a list, or a watch that begins with one, if the cluster learns list sizes; otherwise undefined: it counts as one seat. */
  readonly list: ListRequest | undefined
  /** Renewed after every wait. */
  readonly moment: Moment
  /** Number of filters passed so far, in order. Only the pipeline changes it. */
  passed: number
  /** Set by flow control: the limit was reached, and the request passed anyway. */
  reserved: boolean
  /** Set by flow control: what to release. */
  held: Held | undefined
  /** `Warning` texts of filters in shadow mode that would have refused. */
  warnings: readonly string[]
  /** `filter/rule` of the same. */
  shadow: readonly string[]
}

/**
 * A step of admission. Its name is the key in a set of filters and is the same everywhere: shadow warnings, log, docs heading.
 * @typeParam Later what `check` may return instead of an answer: a promise of one; never = it always answers synchronously
 */
export interface Filter<A, Later = never> {
  /** Whether the filter only counts and warns for this request. */
  shadow(admission: A): boolean
  /** undefined = it passes. */
  check(admission: A): Refusal | undefined | Later
}
