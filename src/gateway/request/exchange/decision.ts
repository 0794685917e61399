// Everything known about a request, growing step by step: target, sender, decision. Nothing is ever removed.

import type { HeaderList } from '../../../kit/api/stream.ts'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { Admission, Filter } from '../../core/admission/filter.ts'
import type { AskingFilter, FilterName } from '../../core/admission/order.ts'
import type { PermitOf, Pipeline } from '../../core/admission/pipeline.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import type { WriteEffect } from '../../core/policy/ending-writes.ts'
import type { ScaleChange } from '../../core/policy/scale-change.ts'
import type { RequestInfo } from '../../core/request/request-info.ts'
import type { SessionTap } from '../../core/request/session-tap.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import type { AnswerChange } from './answer-change.ts'
import type { Exchange } from './exchange.ts'
import type { Authenticated } from './identity.ts'

/** The filters of the program (program/threads/thread/filters.ts). A promise: one of them has to wait. */
export type Filters = Pipeline<Decision, Promise<Refusal | undefined>>
export type RequestFilter = Filter<Decision, Promise<Refusal | undefined>>
/** Filters of one subject. */
export type SubjectFilters = Readonly<Partial<Record<AskingFilter, RequestFilter>>>

/** Target: the cluster and the request info. */
export interface Asked {
  readonly filters: Filters
  readonly live: LiveCluster
  readonly cluster: CompiledCluster
  readonly info: RequestInfo
  /** The sender, not the impersonated user; undefined until authenticated. */
  readonly requester: Authenticated | undefined
  /** The decision of the cluster with members that has handed it over to this one; undefined = it came here. */
  readonly cameBy: Decision | undefined
}

/** Asked, with the sender authenticated. */
export interface Requested extends Asked {
  readonly requester: Authenticated
}

/** Requested, with the user it runs as and the rule: input and output of the filters. */
export interface Decision extends Requested, Admission {
  readonly exchange: Exchange
  /** The user that the request runs as. */
  readonly caller: Authenticated
  /** Set by a filter whose answer may be out of date by the time upstream has the request. */
  recheck: Recheck | undefined
  /** Effect on spec.replicas, computed on first use: one read, shared by all filters (calls/scale-change.ts). */
  scaleChange: Promise<ScaleChange | Refusal | undefined> | undefined
  /** Effect on pods that the request does not name, computed on first use (calls/write-effect.ts). */
  writeEffect: Promise<WriteEffect | Refusal | undefined> | undefined
  /** Set by a filter that looks on at the session which the request opens. */
  tap: SessionTap | undefined
  /** Set by a filter of a cluster with members: one of them serves the request. */
  handOver: HandOver | undefined
  /** Set by a filter that serves the request itself instead of forwarding it. @returns a refusal that is still to be sent */
  deliver: ((permit: Permit) => Promise<Refusal | undefined>) | undefined
}

/** How a member gets a request. */
export interface HandOver {
  /** The UpstreamCluster that it is. */
  readonly member: string
  /** The caller as it is known there. */
  readonly user: UserInfo
  /** The request with its own names. */
  readonly target: string
  /** Default: what is sent and answered stays as it is. */
  readonly renamed?: RenamedWrite
}

/** A write with the names and versions of a member. */
export interface RenamedWrite {
  /** Header fields for upstream. */
  readonly fields: HeaderList
  /** undefined = it has none. */
  readonly body: Buffer | undefined
  readonly answer: AnswerChange
}

/** On a 409 from upstream this filter and those after it check again. */
export interface Recheck {
  readonly filter: FilterName
  readonly check: () => Promise<Refusal | undefined>
}

/** A decision that every filter has passed. */
export type Permit = PermitOf<Decision>
