// The spine: the way of one request, top to bottom. Start reading here.
// Every step returns its value or a Refusal; a thrown error is a bug or a broken wire, and is answered once, at the end.
// Nothing is waited for but an answer about a token or about impersonation: then the way goes on where it stopped.

import type { RequestRecord } from '../api/ports/request-record.ts'
import type { HeaderList, Peer, RequestHandler, Stream, StreamEvents } from '../api/ports/stream.ts'
import type { ClientUpgrade, UpgradeHandler } from '../api/ports/upgrade.ts'
import { policyOf, readRequestInfo, refuseLongTarget, refuseRevoked, selectPolicy } from '../core/admission/steps.ts'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import { onRequest as countForRetries } from '../core/endpoints/retry-budget.ts'
import { upgradeUnsupportedMessage } from '../core/policy/traffic-messages.ts'
import { isRefusal, type Refusal, refuse } from '../core/refusal/refusal.ts'
import { isLongRunning, isWatch } from '../core/request/long-running.ts'
import type { RequestInfo } from '../core/request/request-info.ts'
import type { LiveCluster } from '../state/clusters.ts'
import { authenticate } from './authenticate.ts'
import { admit, type Permit } from './exchange/admit.ts'
import { Exchange } from './exchange/exchange.ts'
import type { Gateway } from './exchange/gateway.ts'
import type { Authenticated } from './exchange/identity.ts'
import { refuseCancelled } from './exchange/refuse-cancelled.ts'
import { respond } from './exchange/respond.ts'
import { forward } from './forward.ts'
import { impersonate } from './impersonation.ts'
import { lookup } from './lookup.ts'
import type { Protected } from './protect/deletion.ts'
import { needsProtection, protect } from './protect/protect.ts'
import { upgrade } from './upgrade.ts'

/** Of a target that is too long, as much as the logs show. */
const LONG_TARGET_LOGGED = 1024

export function createRequestHandler(gw: Gateway): RequestHandler {
  return (peer, stream, head, end) => begin(gw, peer, stream, head, end, undefined)
}

export function createUpgradeHandler(gw: Gateway): UpgradeHandler {
  return (peer, answer, head, client) => begin(gw, peer, answer, head, true, client)
}

function begin(
  gw: Gateway,
  peer: Peer,
  stream: Stream,
  head: HeaderList,
  end: boolean,
  client: ClientUpgrade | undefined,
): StreamEvents {
  const exchange = new Exchange(gw, peer, stream, head, end, client)
  try {
    settle(exchange, serve(exchange))
  } catch (error) {
    onBug(exchange, error)
  }
  return exchange
}

/** The straight line, first part: what is asked, of which cluster, and who asks. */
function serve(exchange: Exchange): Refusal | undefined {
  const { gw, peer, head, record } = exchange
  if (head.problem !== '') return refuse('bad-request', head.problem)
  const tooLong = refuseLongTarget(head.target)
  if (tooLong !== undefined) {
    record.target = head.target.slice(0, LONG_TARGET_LOGGED)
    return tooLong
  }

  const live = lookup(exchange)
  if (isRefusal(live)) return live
  const cluster = live.compiled
  record.cluster = cluster.name
  record.clusterLogMode = cluster.logMode
  if (cluster.closeWhenIdle) peer.drain()

  const info = readRequestInfo(record.method, exchange.target)
  if (isRefusal(info)) return info
  describe(record, info)
  gw.events.requestStarted(record)

  const requestor = authenticate(exchange, live, cluster)
  if (requestor instanceof Promise) {
    return wait(exchange, requestor, (known) => serveRequestor(exchange, live, cluster, info, known))
  }
  return serveRequestor(exchange, live, cluster, info, requestor)
}

/** Second part: whom the request runs as. */
function serveRequestor(
  exchange: Exchange,
  live: LiveCluster,
  cluster: CompiledCluster,
  info: RequestInfo,
  requestor: Authenticated | Refusal,
): Refusal | undefined {
  if (isRefusal(requestor)) return requestor
  const revoked = refuseRevoked(live.compiled.authentication.revoked, requestor)
  if (revoked !== undefined) return revoked
  const cancelled = refuseCancelled(exchange, requestor)
  if (cancelled !== undefined) return cancelled
  const caller = impersonate(exchange, live, requestor)
  if (caller instanceof Promise) {
    return wait(exchange, caller, (known) => {
      const meanwhile = refuseRevoked(live.compiled.authentication.revoked, requestor)
      return meanwhile ?? serveCaller(exchange, live, cluster, info, requestor, known)
    })
  }
  return serveCaller(exchange, live, cluster, info, requestor, caller)
}

/** Third part: whether and how it is served. */
function serveCaller(
  exchange: Exchange,
  live: LiveCluster,
  cluster: CompiledCluster,
  info: RequestInfo,
  requestor: Authenticated,
  caller: Authenticated | Refusal,
): Refusal | undefined {
  if (isRefusal(caller)) return caller
  const { peer, record } = exchange
  identify(record, requestor, caller)
  exchange.requestor = requestor
  const { user } = caller

  const matched = selectPolicy(cluster, info, user, record.userAgent)
  if (isRefusal(matched)) return matched
  const policy = policyOf(cluster, matched)
  record.policy = matched.policy
  record.rule = matched.rule
  record.policyLogMode = policy.logMode
  record.flowControl = cluster.schemas[policy.schema]?.name ?? ''

  const permit = admit({
    live,
    cluster,
    limits: live.flows,
    policy,
    rule: matched.rule,
    info,
    user,
    userAgent: record.userAgent,
    remoteAddress: peer.remoteAddress,
    isWatch: isWatch(info),
    moment: exchange,
    passed: 0,
    held: undefined,
    warnings: NONE,
    shadow: NONE,
  })
  if (isRefusal(permit)) return permit
  exchange.permit = permit
  record.shadow = permit.shadow

  const { protection } = cluster
  if (protection !== undefined && needsProtection(exchange.gw, cluster, info)) {
    const judged = protect(exchange, permit, caller, protection)
    return serveJudged(exchange, live, permit, info, requestor, caller, judged)
  }
  return send(exchange, live, permit, info, caller)
}

/** Beside the line: a deletion of pods goes on when the ledger allows it. */
function serveJudged(
  exchange: Exchange,
  live: LiveCluster,
  permit: Permit,
  info: RequestInfo,
  requestor: Authenticated,
  caller: Authenticated,
  judged: Promise<Protected | Refusal>,
): undefined {
  return wait(exchange, judged, (outcome) => {
    if (outcome === 'answered' || exchange.phase === 'over') return undefined
    if (isRefusal(outcome)) return outcome
    const { again } = outcome
    if (again !== undefined) {
      exchange.onConflict = () => serveJudged(exchange, live, permit, info, requestor, caller, again())
    }
    const meanwhile = refuseRevoked(live.compiled.authentication.revoked, requestor)
    return meanwhile ?? send(exchange, live, permit, info, caller)
  })
}

/** Last part: on its way. */
function send(
  exchange: Exchange,
  live: LiveCluster,
  permit: Permit,
  info: RequestInfo,
  caller: Authenticated,
): Refusal | undefined {
  if (exchange.gone) {
    exchange.record.aborted = 'client'
    exchange.end()
    return undefined
  }
  countForRetries(live.retryBudget, exchange.monotonicMs)
  if (exchange.upgrade !== undefined) {
    upgrade(exchange, exchange.upgrade, permit, caller)
    return undefined
  }
  if (needsUpgrade(info)) return refuse('upgrade-unsupported', upgradeUnsupportedMessage())
  forward(exchange, permit, caller)
  return undefined
}

const NONE: readonly string[] = []

/** Answers a request that is refused; any other is on its way. */
function settle(exchange: Exchange, refusal: Refusal | undefined): void {
  if (refusal === undefined) return
  const { peer } = exchange
  // A certificate that the handshake did not verify never will be on this connection: OpenSSL checked it against the CAs
  // of then, and checks it against those of now on a new one. (kube-apiserver closes connections on every 401.)
  if (refusal.refused === 'unauthorized' && peer.certificate?.verified === false) peer.drain()
  // Nothing more comes of the connection of a revoked certificate either.
  else if (refusal.refused === 'revoked' && peer.certificate !== undefined) peer.drain()
  respond(exchange, refusal)
}

/** Goes on when the answer is there: that is then the moment of the decision. */
function wait<T>(exchange: Exchange, pending: Promise<T>, next: (known: T) => Refusal | undefined): undefined {
  pending
    .then((known) => {
      exchange.nowMs = exchange.gw.clock.now()
      exchange.monotonicMs = exchange.gw.clock.monotonic()
      settle(exchange, next(known))
    })
    .catch((error: unknown) => onBug(exchange, error))
}

/** exec, attach and port-forward are nothing without an upgrade; a proxied request may be an ordinary one. */
function needsUpgrade(info: RequestInfo): boolean {
  if (!info.isResourceRequest || info.resource !== 'pods') return false
  return info.subresource === 'exec' || info.subresource === 'attach' || info.subresource === 'portforward'
}

function describe(record: RequestRecord, info: RequestInfo): void {
  record.verb = info.verb
  record.apiGroup = info.apiGroup
  record.apiVersion = info.apiVersion
  record.resource = info.resource
  record.subresource = info.subresource
  record.namespace = info.namespace
  record.name = info.name
  record.isResourceRequest = info.isResourceRequest
  record.path = info.path
  record.longRunning = isLongRunning(info)
}

function identify(record: RequestRecord, requestor: Authenticated, caller: Authenticated): void {
  record.user = caller.user.name
  record.groups = caller.user.groups
  record.uid = caller.user.uid
  if (caller === requestor) return
  record.impersonator = requestor.user.name
  record.impersonatorUid = requestor.user.uid
  record.impersonatorGroups = requestor.user.groups
}

/** A bug is logged with its stack and shown to the client without. */
function onBug(exchange: Exchange, error: unknown): void {
  const { gw, record } = exchange
  gw.log.error('request failed inside the gateway', { error, auditId: record.auditId, cluster: record.cluster })
  if (exchange.phase === 'over') return
  exchange.upstream?.cancel()
  if (record.code !== 0) {
    exchange.client.reset('internal')
    exchange.end()
    return
  }
  respond(exchange, refuse('internal', 'the gateway failed; its log has the details under this Audit-ID'))
}
