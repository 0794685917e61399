// All that is known of a request, growing step by step: what is asked, who asks, what is decided. Nothing of it is taken back.

import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import type { ScaleChange } from '../../../scaling/core/scale-write/scale-change.ts'
import type { Admission } from '../../core/admission/filter.ts'
import type { FilterName } from '../../core/admission/order.ts'
import type { Permit as PermitOf } from '../../core/admission/pipeline.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import type { WriteEffect } from '../../core/policy/ending-writes.ts'
import type { RequestInfo } from '../../core/request/request-info.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import type { Exchange } from './exchange.ts'
import type { Authenticated } from './identity.ts'

/** What is asked, of which cluster. */
export interface Asked {
  readonly live: LiveCluster
  readonly cluster: CompiledCluster
  readonly info: RequestInfo
  /** Who sends it, whomever it runs as; undefined until that is known. */
  readonly requester: Authenticated | undefined
}

/** And who sends it. */
export interface Requested extends Asked {
  readonly requester: Authenticated
}

/** And the user that it runs as, and the rule: what the filters see, and what they leave behind. */
export interface Decision extends Requested, Admission {
  readonly exchange: Exchange
  /** The user that it runs as. */
  readonly caller: Authenticated
  /** Left by a filter whose answer may be out of date when upstream has the request. */
  recheck: Recheck | undefined
  /** What it does to spec.replicas, once a filter has asked: one read and one look for all of them (scale/scale-change.ts). */
  scaleChange: Promise<ScaleChange | Refusal | undefined> | undefined
  /** What it does to pods that it does not name, once a filter has asked (calls/write-effect.ts). */
  writeEffect: Promise<WriteEffect | Refusal | undefined> | undefined
  /** Left by a filter that has the request served in another way than by passing it on. @returns a refusal that is still to be sent */
  deliver: ((permit: Permit) => Promise<Refusal | undefined>) | undefined
}

/** What is done when upstream answers 409: a filter checks again, and so do those behind it. */
export interface Recheck {
  readonly filter: FilterName
  readonly check: () => Promise<Refusal | undefined>
}

/** A decision that every filter has passed. */
export type Permit = PermitOf<Decision>
