// What every step of the request path can reach: state, connections, reviewers, and the world as arguments.

import type { Clock, Logger } from '../../api/ports/ports.ts'
import type { ProtectionGate } from '../../api/ports/protection.ts'
import type { RequestRecord } from '../../api/ports/request-record.ts'
import type { AccessReviewer } from '../../io/reviews/access-review.ts'
import type { TokenReviewer } from '../../io/reviews/token-review.ts'
import type { Upstreams } from '../../io/upstream/upstreams.ts'
import type { ClusterTable } from '../../state/clusters.ts'
import type { RunningRequests } from '../../state/running.ts'
import type { UserBudgets } from '../../state/user-budgets.ts'

export interface Gateway {
  readonly clusters: ClusterTable
  readonly upstreams: Upstreams
  readonly running: RunningRequests
  readonly tokens: TokenReviewer
  readonly access: AccessReviewer
  readonly budgets: UserBudgets
  /** Who evaluates deletions of pods; absent = nobody here can. */
  readonly protection?: ProtectionGate
  readonly clock: Clock
  readonly log: Logger
  readonly events: GatewayEvents
  random(): number
  uuid(): string
  /** True from SIGTERM on. */
  draining: boolean
}

/** What happens on the request path; metrics and logs listen. */
export interface GatewayEvents {
  /** Cluster and request info are known. */
  requestStarted(record: RequestRecord): void
  /** The answer's head goes out; for long-running requests the end may be hours away. */
  responseStarted(record: RequestRecord): void
  /** Once for every request, refused or not. */
  requestEnded(record: RequestRecord): void
  retried(cluster: string, cause: 'refused' | 'read'): void
  /** Upstream's 403 looks as if it was for the gateway, which may not impersonate, and not for the user. */
  gatewayRefused(cluster: string): void
}
