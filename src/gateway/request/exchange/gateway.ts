// Dependencies of the request path: state, connections, reviewers, and the outside world.

import type { Clock, Logger } from '../../../kit/api/ports.ts'
import type { ShareLimit } from '../../../kit/core/shares/shared-resource.ts'
import type { RequestRecord } from '../../api/request-record.ts'
import type { Tracer } from '../../api/request-trace.ts'
import type { EndedSession, LogoutOutcome } from '../../api/token-session.ts'
import type { WaitLimit } from '../../core/upstream/wait-refusal.ts'
import type { AccessReviewer } from '../../io/reviews/access-review.ts'
import type { IssuerTokens } from '../../io/reviews/issuer-tokens.ts'
import type { TokenReviewer } from '../../io/reviews/token-review.ts'
import type { Upstreams } from '../../io/upstream/upstreams.ts'
import type { AccessGrants } from '../../state/access-grants.ts'
import type { ClusterTable } from '../../state/clusters.ts'
import type { EndedSessions } from '../../state/ended-sessions.ts'
import type { IdentitiesSeen } from '../../state/identities-seen.ts'
import type { RunningRequests } from '../../state/running.ts'
import type { ThreadShares } from '../../state/thread-shares.ts'
import type { UserBudgets } from '../../state/user-budgets.ts'

/** Failed credentials by source address, and the sources blocked for them. */
export interface FailureGate {
  /** Counts a wrong credential of the source. */
  failed(source: string): void
  /** How long the source is still blocked without a valid credential, milliseconds; 0 = not blocked. */
  blockedMs(source: string, nowMs: number): number
  /** Whether any thread has accepted this token lately. @param hash the first one of tokenHashes */
  isKnownToken(hash: string): boolean
  acceptedToken(hash: string): void
}

export interface Gateway {
  readonly clusters: ClusterTable
  readonly upstreams: Upstreams
  readonly running: RunningRequests
  readonly tokens: TokenReviewer
  /** Tokens that are verified here. */
  readonly issuers: IssuerTokens
  readonly access: AccessReviewer
  readonly grants: AccessGrants
  /** By logouts at the issuers of tokens. */
  readonly endedSessions: EndedSessions
  /** Puts a logout in force in all threads. Rejects if it takes too long. */
  endSessions(ended: readonly EndedSession[]): Promise<LogoutOutcome>
  readonly budgets: UserBudgets
  /** Which users there are. */
  readonly identities: IdentitiesSeen
  /** Absent = failures are not counted. */
  readonly failures?: FailureGate
  /** Limits shared between requests. */
  readonly shares: ThreadShares
  /** Absent = tracing is off. */
  readonly tracer?: Tracer
  readonly clock: Clock
  readonly log: Logger
  readonly events: GatewayEvents
  random(): number
  uuid(): string
  /** True from SIGTERM on. */
  draining: boolean
}

/** Events of the request path, for metrics and logs. */
export interface GatewayEvents {
  /** Cluster and request info are known. This and the next a second time, if the cluster has handed it over to a member. */
  requestStarted(record: RequestRecord): void
  /** The user is known, nothing is decided yet. */
  requestIdentified(record: RequestRecord): void
  /** The response head goes out; a long-running request may end hours later. */
  responseStarted(record: RequestRecord): void
  /** Once for every request, refused or not. */
  requestEnded(record: RequestRecord): void
  retried(cluster: string, cause: 'refused' | 'read'): void
  /** The request passed because its effect could not be determined. */
  disruptionUnchecked(cluster: string): void
  /** A limit shared between sources was hit. @param known whether the source is an authenticated user */
  limited(limit: ShareLimit | WaitLimit | 'authentication-failures', known: boolean): void
  /** Upstream's 403 seems to be for the gateway, which lacks the right to impersonate, and not for the user. */
  gatewayRefused(cluster: string): void
  /** Requests begin to wait for the first check of one of its endpoints. */
  awaitsCheck(cluster: string): void
}
