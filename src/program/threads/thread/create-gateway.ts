// The gateway of a thread: everything the request path uses, built from the thread's own parts.

import type { Tracer } from '../../../gateway/api/request-trace.ts'
import type { EndedSession, LogoutOutcome } from '../../../gateway/api/token-session.ts'
import { createAccessReviewer } from '../../../gateway/io/reviews/access-review.ts'
import { createIssuerTokens } from '../../../gateway/io/reviews/issuer-tokens.ts'
import { createTokenReviewer, type TokenLookup } from '../../../gateway/io/reviews/token-review.ts'
import { type UpstreamNews, Upstreams } from '../../../gateway/io/upstream/upstreams.ts'
import {
  ACCESS_REVIEWS,
  EJECTIONS,
  ID_TOKENS,
  TOKEN_CACHE,
  TOKEN_REVIEWS,
} from '../../../gateway/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import type { Gateway } from '../../../gateway/request/exchange/gateway.ts'
import { AccessGrants } from '../../../gateway/state/access-grants.ts'
import { ClusterTable } from '../../../gateway/state/clusters.ts'
import { EndedSessions } from '../../../gateway/state/ended-sessions.ts'
import { IdentitiesSeen } from '../../../gateway/state/identities-seen.ts'
import { RunningRequests } from '../../../gateway/state/running.ts'
import { ThreadShares } from '../../../gateway/state/thread-shares.ts'
import { UserBudgets } from '../../../gateway/state/user-budgets.ts'
import type { Clock } from '../../../kit/api/ports.ts'
import type { DialGuard } from '../../../kit/io/dial/dial-guard.ts'
import { fastUuid } from '../../../kit/io/world/uuid.ts'
import type { ThreadData } from '../messages.ts'
import type { ThreadFailures } from './failures.ts'
import type { ThreadOutbox } from './outbox.ts'

/** Other parts of the thread. */
interface GatewayDeps {
  readonly data: ThreadData
  readonly clock: Clock
  readonly metrics: MetricsRecorder
  readonly outbox: ThreadOutbox
  readonly failures: ThreadFailures
  readonly guard: DialGuard
  readonly events: Gateway['events']
  /** Asks the main thread for newer keys of an issuer. */
  readonly readKeys: (source: string) => Promise<unknown>
  /** Tells the main thread of a logout. */
  readonly endSessions: (ended: readonly EndedSession[]) => Promise<LogoutOutcome>
  /** undefined = no tracing. */
  readonly tracer: Tracer | undefined
}

export function createGateway(deps: GatewayDeps): Gateway {
  const { data, clock, metrics, outbox, tracer } = deps
  const clusters = new ClusterTable(data.place)
  const onBroken = (cluster: string, url: string, error: Error): void =>
    endpointBroke(deps, clusters, cluster, url, error)
  return {
    clusters,
    upstreams: new Upstreams(onBroken, deps.guard, metrics, createUpstreamNews(outbox.log)),
    running: new RunningRequests(),
    clock,
    log: outbox.log,
    tokens: createTokenReviewer(clock.monotonic, (cluster, outcome) => countToken(metrics, cluster, outcome)),
    issuers: createIssuerTokens({
      clock,
      log: outbox.log,
      readKeys: deps.readKeys,
      onToken: (cluster, result) => metrics.add(ID_TOKENS, 1, cluster, result),
    }),
    access: createAccessReviewer(clock.monotonic, (cluster, verdict) =>
      metrics.add(ACCESS_REVIEWS, 1, cluster, verdict === 'unavailable' ? 'error' : verdict),
    ),
    grants: new AccessGrants(),
    endedSessions: new EndedSessions(),
    endSessions: (ended) => deps.endSessions(ended),
    budgets: new UserBudgets(),
    identities: new IdentitiesSeen(),
    failures: deps.failures,
    shares: new ThreadShares(data.config),
    events: deps.events,
    ...(tracer !== undefined && { tracer }),
    random: Math.random,
    uuid: fastUuid,
    draining: false,
  }
}

function createUpstreamNews(log: Gateway['log']): UpstreamNews {
  return {
    quarantined: (cluster, { source }, forMs) =>
      log.warn('connections to an endpoint ended because of requests: their sender gets its own for a while', {
        cluster,
        source,
        seconds: forMs / 1000,
      }),
    relisting: (cluster, active) => {
      if (active) log.warn('connections broke: lists and watches are admitted at the pace of the answers', { cluster })
      else log.info('lists and watches are admitted as they arrive again', { cluster })
    },
  }
}

/** A connection to an endpoint broke: updates the state shared by all threads, and the main thread probes it soon. */
function endpointBroke(
  { clock, metrics, outbox }: GatewayDeps,
  clusters: ClusterTable,
  cluster: string,
  url: string,
  error: Error,
): void {
  const live = clusters.get(cluster)
  const endpoint = live?.endpoints.byUrl(url)
  if (live === undefined || endpoint === undefined) return
  const ejections = endpoint.health.ejections
  live.endpoints.onFailure(endpoint, clock.monotonic())
  if (endpoint.health.ejections > ejections) metrics.add(EJECTIONS, 1, cluster, url)
  outbox.log.warn('connection to endpoint broke', { cluster, endpoint: url, error: error.message })
  outbox.broke(cluster, url)
}

function countToken(metrics: MetricsRecorder, cluster: string, outcome: TokenLookup): void {
  metrics.add(TOKEN_CACHE, 1, cluster, outcome === 'hit' ? 'hit' : 'miss')
  if (outcome === 'hit' || outcome === 'limited' || outcome === 'vouched') return
  const result = outcome === 'authenticated' ? 'allowed' : outcome === 'rejected' ? 'denied' : 'error'
  metrics.add(TOKEN_REVIEWS, 1, cluster, result)
}
