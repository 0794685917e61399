// What a filter of admission sees, and what it may leave behind.

import type { UserInfo } from '../../api/kube/user.ts'
import type { CompiledCluster, CompiledPolicy, CompiledSchema } from '../../core/cluster/compiled-cluster.ts'
import type { FlowCell } from '../../core/limits/flow-cell.ts'
import type { Refusal } from '../../core/refusal/refusal.ts'
import type { RequestInfo } from '../../core/request/request-info.ts'
import type { LiveCluster } from '../../state/clusters.ts'

export interface AdmissionRequest {
  readonly live: LiveCluster
  /** The object in force when the request came; a change in the middle does not split a decision. */
  readonly cluster: CompiledCluster
  readonly policy: CompiledPolicy
  /** Index of the rule that matched. */
  readonly rule: number
  readonly info: RequestInfo
  readonly user: UserInfo
  readonly userAgent: string
  readonly remoteAddress: string
  readonly isWatch: boolean
  /** Wall clock, for expiry times. */
  readonly nowMs: number
  /** Monotonic, for rates. */
  readonly monotonicMs: number
  /** Filled by flow control: what to give back. */
  held: Held | undefined
  /** Filled by admission: `Warning` texts of what would have refused, were it not in shadow mode. */
  warnings: readonly string[]
  /** `filter/rule` of the same. */
  shadow: readonly string[]
}

export interface Held {
  readonly schema: CompiledSchema
  readonly cell: FlowCell
  /** An in-flight slot is held. */
  inFlight: boolean
  /** A token was taken: given back only when the request could be sent nowhere. */
  token: boolean
  watch: boolean
}

export interface Filter {
  /** One name everywhere: metric label, shadow warning, docs heading. */
  readonly name: string
  /** Whether the filter only counts and warns for this request. */
  shadow(request: AdmissionRequest): boolean
  check(request: AdmissionRequest): Refusal | undefined
}
