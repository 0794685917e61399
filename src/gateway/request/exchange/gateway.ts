// What every step of the request path can reach: state, connections, reviewers, and the world as arguments.

import type { Clock, Logger } from '../../../kit/api/ports.ts'
import type { ShareLimit } from '../../../kit/core/shares/shared-resource.ts'
import type { ProtectionGate } from '../../../protection/api/protection.ts'
import type { ScaleUpGuardTable } from '../../../scale-up-guard/state/scale-up-guards.ts'
import type { ScaleDownReport } from '../../../scaling/api/scale-down.ts'
import type { ScaleOutcome, UncheckedReason } from '../../../scaling/core/scale-write/outcome.ts'
import type { ScaleDownPolicies } from '../../../scaling/state/scale-down-policies.ts'
import type { RequestRecord } from '../../api/request-record.ts'
import type { Tracer } from '../../api/request-trace.ts'
import type { WaitLimit } from '../../core/upstream/wait-refusal.ts'
import type { AccessReviewer } from '../../io/reviews/access-review.ts'
import type { TokenReviewer } from '../../io/reviews/token-review.ts'
import type { Upstreams } from '../../io/upstream/upstreams.ts'
import type { ClusterTable } from '../../state/clusters.ts'
import type { RunningRequests } from '../../state/running.ts'
import type { ThreadShares } from '../../state/thread-shares.ts'
import type { UserBudgets } from '../../state/user-budgets.ts'

export interface ScaleDowns {
  readonly policies: ScaleDownPolicies
  /** What has come of one. */
  report(report: ScaleDownReport): void
}

/** Credentials that fail, by source address, and who is blocked because of them. */
export interface FailureGate {
  /** A credential of the source was wrong. */
  failed(source: string): void
  /** For how long nothing is done for it without a valid credential, milliseconds; 0 = it is not blocked. */
  blockedMs(source: string, nowMs: number): number
  /** Whether a token was accepted lately, by any thread. @param hash as of tokenHashes, the first */
  isKnownToken(hash: string): boolean
  acceptedToken(hash: string): void
}

export interface Gateway {
  readonly clusters: ClusterTable
  readonly upstreams: Upstreams
  readonly running: RunningRequests
  readonly tokens: TokenReviewer
  readonly access: AccessReviewer
  readonly budgets: UserBudgets
  /** Absent = failures are not counted. */
  readonly failures?: FailureGate
  /** What requests share. */
  readonly shares: ThreadShares
  /** Node groups that the autoscaler may not raise now. */
  readonly scaleUpGuards: ScaleUpGuardTable
  /** Who evaluates deletions of pods; absent = nobody here can. */
  readonly protection?: ProtectionGate
  /** What chooses victims of scale-downs, and who hears of it; absent = nobody here does. */
  readonly scaleDowns?: ScaleDowns
  /** Absent = no request is traced. */
  readonly tracer?: Tracer
  readonly clock: Clock
  readonly log: Logger
  readonly events: GatewayEvents
  random(): number
  uuid(): string
  /** True from SIGTERM on. */
  draining: boolean
}

/** What became of a write of the replicas of a node group that is backed off. */
export type GuardedWrite = 'refused' | 'warned' | 'shadow' | 'unchecked' | 'passed'

/** What happens on the request path; metrics and logs listen. */
export interface GatewayEvents {
  /** Cluster and request info are known. */
  requestStarted(record: RequestRecord): void
  /** The user is known, nothing is decided yet. */
  requestIdentified(record: RequestRecord): void
  /** The answer's head goes out; for long-running requests the end may be hours away. */
  responseStarted(record: RequestRecord): void
  /** Once for every request, refused or not. */
  requestEnded(record: RequestRecord): void
  /** A write of the replicas of a node group that is backed off. */
  guardedWrite(cluster: string, guard: string, outcome: GuardedWrite): void
  retried(cluster: string, cause: 'refused' | 'read'): void
  /** It passed, because what it disrupts could not be found out. */
  disruptionUnchecked(cluster: string): void
  /** A write of replicas was evaluated, or was not, and why. */
  scaleWrite(cluster: string, outcome: ScaleOutcome, reason: UncheckedReason | ''): void
  /** It met a limit that is divided among sources. @param known whether it is a user who was authenticated */
  limited(limit: ShareLimit | WaitLimit | 'authentication-failures', known: boolean): void
  /** Upstream's 403 looks as if it was for the gateway, which may not impersonate, and not for the user. */
  gatewayRefused(cluster: string): void
}
