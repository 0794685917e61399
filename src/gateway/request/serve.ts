// The spine: one request from top to bottom. Start reading here.
// Every step returns its value or a Refusal; a thrown error is a bug or a broken connection, and is answered once, at the end.
// A step that has to wait (for reviews, or in a filter) returns a promise, and the request resumes where it stopped.

import type { HeaderList, Peer, RequestHandler, Stream, StreamEvents } from '../../kit/api/stream.ts'
import type { ClientUpgrade, UpgradeHandler } from '../../kit/api/upgrade.ts'
import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { AT, endStep, nextStepAt, workOn } from '../../kit/io/stalls/steps.ts'
import type { RequestRecord } from '../api/request-record.ts'
import { policyOf, readRequestInfo, refuseLongTarget, refuseRevoked, selectPolicy } from '../core/admission/steps.ts'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import { asksForClusters, lookupCluster, tellsOfLogout } from '../core/cluster/lookup-cluster.ts'
import { onRequest as countForRetries } from '../core/endpoints/retry-budget.ts'
import { listRequestOf } from '../core/list-cost/list-request.ts'
import { clientClassOf } from '../core/policy/client-class.ts'
import { unknownClusterMessage } from '../core/policy/policy-messages.ts'
import {
  misdirectedListMessage,
  misdirectedMessage,
  upgradeUnsupportedMessage,
} from '../core/policy/traffic-messages.ts'
import { isLongRunning, isWatch } from '../core/request/long-running.ts'
import type { RequestInfo } from '../core/request/request-info.ts'
import { originForm } from '../core/request/request-target.ts'
import { sessionKind } from '../core/request/session-request.ts'
import type { LiveCluster } from '../state/clusters.ts'
import { refuseEndedGrant, withGrants } from './access-grants.ts'
import { authenticate, impersonate } from './authenticate.ts'
import { endSessions } from './backchannel-logout.ts'
import { firstCheckFor } from './calls/first-check.ts'
import { refuseEndedSession } from './ended-session.ts'
import type { Asked, Decision, Filters, HandOver, Permit, Recheck, Requested } from './exchange/decision.ts'
import { Exchange } from './exchange/exchange.ts'
import type { Gateway } from './exchange/gateway.ts'
import type { Authenticated } from './exchange/identity.ts'
import { respond } from './exchange/respond.ts'
import { refuseCancelled, takeShare, takeUnknownShare } from './exchange/running-share.ts'
import { forward } from './forward.ts'
import { refuseNotHandedOver, servedInMember } from './hand-over.ts'
import { listClusters } from './list-clusters.ts'
import { upgrade } from './upgrade.ts'

/** A refusal still to be sent; undefined = forwarded or waiting. */
type Served = Refusal | undefined

/** Logged prefix of a target that is too long. */
const LONG_TARGET_LOGGED = 1024

export function createRequestHandler(gw: Gateway, filters: Filters): RequestHandler {
  return (peer, stream, head, end) => begin(gw, filters, peer, stream, head, end, undefined)
}

export function createUpgradeHandler(gw: Gateway, filters: Filters): UpgradeHandler {
  return (peer, answer, head, client) => begin(gw, filters, peer, answer, head, true, client)
}

function begin(
  gw: Gateway,
  filters: Filters,
  peer: Peer,
  stream: Stream,
  head: HeaderList,
  end: boolean,
  client: ClientUpgrade | undefined,
): StreamEvents {
  const exchange = new Exchange(gw, peer, stream, head, end, client)
  try {
    settle(exchange, serve(exchange, filters))
  } catch (error) {
    onBug(exchange, error)
  }
  return exchange
}

/** Part one: target, cluster and sender. */
function serve(exchange: Exchange, filters: Filters): Served {
  const { gw, peer, head, record } = exchange
  if (head.problem !== '') return refuse('bad-request', head.problem)
  const tooLong = refuseLongTarget(head.target)
  if (tooLong !== undefined) {
    record.target = head.target.slice(0, LONG_TARGET_LOGGED)
    return tooLong
  }

  const live = lookup(exchange)
  if (live === 'list' || live === 'logout') return serveHere(exchange, live)
  if ('refused' in live) return live
  const cluster = live.compiled
  record.cluster = cluster.name
  record.clusterLogMode = cluster.logMode
  if (cluster.closeWhenIdle) peer.drain()

  const info = readRequestInfo(record.method, exchange.target)
  if ('refused' in info) return info
  describe(record, info)
  gw.events.requestStarted(record)
  return serveSender(exchange, { filters, live, cluster, info, requester: undefined, cameBy: undefined })
}

function serveSender(exchange: Exchange, asked: Asked): Served {
  const { live, info } = asked
  const requester = authenticate(exchange, live, asked.cluster)
  if (requester instanceof Promise) {
    const refusal = takeUnknownShare(exchange, info) ?? exchange.bufferHead()
    if (refusal !== undefined) return refusal
    const next = live.endpoints.unchecked && !exchange.startedOver ? serveReviewed : serveRequester
    return goOnLater(exchange, asked, requester, next)
  }
  return 'refused' in requester ? requester : serveRequester(exchange, asked, requester)
}

/** Whether it waits for the first check of an endpoint, which each request does once. */
function awaitsCheck(exchange: Exchange, { endpoints }: LiveCluster): boolean {
  if (!endpoints.unchecked || exchange.startedOver) return false
  exchange.startedOver = true
  return true
}

/** The review has waited for a first check, during which all servers may have been replaced. */
function serveReviewed(exchange: Exchange, asked: Asked, sender: Authenticated): Served {
  return asked.live.compiled === asked.cluster ? serveRequester(exchange, asked, sender) : startOver(exchange, asked)
}

/** By the object in force now: its servers may be others, which have not said who the sender is. */
function startOver(exchange: Exchange, asked: Asked): Served {
  if (exchange.gone) return endGone(exchange)
  exchange.startedOver = true
  if (exchange.seen !== undefined) exchange.seen.open--
  exchange.seen = undefined
  return serveSender(exchange, { ...asked, cluster: asked.live.compiled, requester: undefined })
}

function endGone(exchange: Exchange): undefined {
  exchange.record.aborted = 'client'
  exchange.end()
}

/** For no cluster: answered here. */
function serveHere(exchange: Exchange, what: 'list' | 'logout'): Served {
  const { record, gw } = exchange
  const info = readRequestInfo(record.method, exchange.target)
  if ('refused' in info) return info
  describe(record, info)
  gw.events.requestStarted(record)
  const refusal = takeUnknownShare(exchange, info) ?? exchange.bufferHead()
  if (refusal !== undefined) return refusal
  if (what === 'logout') return settleLate(exchange, endSessions(exchange))
  const listed = listClusters(exchange, (requester, cluster) => {
    const overfull = charge(exchange, requester, cluster)
    identify(record, requester, requester)
    gw.events.requestIdentified(record)
    return takeUnknownShare(exchange, info) ?? overfull
  })
  return listed instanceof Promise ? settleLate(exchange, listed) : listed
}

function settleLate(exchange: Exchange, served: Promise<Refusal | undefined>): undefined {
  served.then((late) => settle(exchange, late)).catch((error: unknown) => onBug(exchange, error))
}

/** Part two: the user that the request runs as. */
function serveRequester(exchange: Exchange, asked: Asked, sender: Authenticated): Served {
  const { live, cluster, info } = asked
  const requester = withGrants(exchange, cluster, sender)
  if ('refused' in requester) return requester
  const { trace } = exchange.record
  if (trace !== undefined) trace.authenticatedMs = exchange.gw.clock.monotonic()
  const overfull = charge(exchange, requester, cluster)
  // From here on the logs name the user, whatever refuses the request.
  identify(exchange.record, requester, requester)
  const revoked = refuseRevoked(live.compiled.authentication.revoked, requester)
  if (revoked !== undefined) return revoked
  const ended = refuseEndedSession(exchange.gw, requester)
  if (ended !== undefined) return ended
  const seen = exchange.gw.identities.see(sender, cluster.name, exchange.nowMs)
  if (seen !== undefined && exchange.longRunning) {
    seen.open++
    exchange.seen = seen
  }
  const cancelled = refuseCancelled(exchange)
  if (cancelled !== undefined) return cancelled
  const exceeded = takeShare(exchange, live, info, requester)
  if (exceeded !== undefined) return exceeded
  if (overfull !== undefined) return overfull
  const requested: Requested = { filters: asked.filters, live, cluster, info, requester, cameBy: undefined }
  if (awaitsCheck(exchange, live)) {
    return wait(exchange, requested, firstCheckFor(exchange, live), () => startOver(exchange, requested))
  }
  const caller = impersonate(exchange, live, requester)
  if (caller instanceof Promise) return goOnLater(exchange, requested, caller, serveCaller)
  return 'refused' in caller ? caller : serveCaller(exchange, requested, caller)
}

/** Part three: whether it is served. */
function serveCaller(exchange: Exchange, requested: Requested, caller: Authenticated): Served {
  const { live, cluster, info, requester, cameBy } = requested
  const { peer, record } = exchange
  identify(record, requester, caller)
  if (record.trace !== undefined) record.trace.identifiedMs = exchange.gw.clock.monotonic()
  exchange.gw.events.requestIdentified(record)
  if (record.audit !== undefined) exchange.body?.showKept(record.audit)
  const { user } = caller
  const client = clientClassOf(user, record.userAgent)
  if (client !== undefined) live.incident.see(client, exchange.nowMs)

  const matched = selectPolicy(cluster, info, user, record.userAgent)
  if ('refused' in matched) return matched
  const policy = policyOf(cluster, matched)
  record.policy = matched.policy
  record.rule = matched.rule
  record.policyLogMode = policy.logMode
  record.flowControl = cluster.schemas[policy.schema]?.name ?? ''

  const list = cluster.learnsLists ? listRequestOf(info, exchange.target, live.lists) : undefined
  record.list = list
  const decision: Decision = {
    filters: requested.filters,
    exchange,
    live,
    cluster,
    info,
    requester,
    caller,
    cameBy,
    limits: live.flows,
    policy,
    rule: matched.rule,
    user,
    userAgent: record.userAgent,
    remoteAddress: peer.remoteAddress,
    isWatch: isWatch(info),
    isUpgrade: exchange.upgrade !== undefined,
    list,
    moment: exchange,
    passed: 0,
    reserved: false,
    held: undefined,
    warnings: cameBy === undefined ? NONE : cameBy.warnings,
    shadow: cameBy === undefined ? NONE : cameBy.shadow,
    recheck: undefined,
    scaleChange: undefined,
    writeEffect: undefined,
    tap: undefined,
    handOver: undefined,
    deliver: undefined,
  }
  exchange.decision = decision
  return serveAdmitted(exchange, decision, decision.filters.run(decision))
}

/** Part four: forwards it, once every filter has let it pass. */
function serveAdmitted(exchange: Exchange, decision: Decision, permit: ReturnType<Filters['run']>): Served {
  exchange.record.shadow = decision.shadow
  exchange.record.reserved = decision.reserved
  if ('refused' in permit) return permit
  if (permit instanceof Promise) {
    return wait(exchange, decision, permit, (refusal) => {
      return serveAdmitted(exchange, decision, decision.filters.resume(decision, refusal))
    })
  }
  if (exchange.gone) return endGone(exchange)
  const { trace } = exchange.record
  if (trace !== undefined) trace.admittedMs = exchange.gw.clock.monotonic()
  // Regardless of shadow mode.
  const unread = exchange.body?.unread
  if (unread !== undefined) return unread
  if (permit.handOver !== undefined) return handOver(exchange, permit, permit.handOver)
  if (permit.deliver !== undefined) return wait(exchange, permit, permit.deliver(permit), (refusal) => refusal)
  countForRetries(permit.live.retryBudget, exchange.monotonicMs)
  if (exchange.upgrade !== undefined) {
    upgrade(exchange, exchange.upgrade, permit)
    return undefined
  }
  // Only a proxied request may be an ordinary one.
  if (sessionKind(permit.info) !== undefined) return refuse('upgrade-unsupported', upgradeUnsupportedMessage())
  const { recheck } = permit
  forward(exchange, permit, recheck === undefined ? undefined : recheckLater(exchange, permit, recheck))
  return undefined
}

/** Once more from part three: a member decides about it by its own rules, for the user that the sender is there. */
function handOver(exchange: Exchange, permit: Permit, to: HandOver): Served {
  const member = exchange.gw.clusters.get(to.member)
  if (member !== undefined && awaitsCheck(exchange, member)) {
    return wait(exchange, permit, firstCheckFor(exchange, member), () => handOver(exchange, permit, to))
  }
  const requested = servedInMember(exchange, permit, to)
  if ('refused' in requested) return requested
  describe(exchange.record, requested.info)
  exchange.gw.events.requestStarted(exchange.record)
  const seen = exchange.gw.identities.see(requested.requester, requested.cluster.name, exchange.nowMs)
  if (seen !== undefined && exchange.longRunning) {
    seen.open++
    exchange.seenInMember = seen
  }
  return refuseCancelled(exchange) ?? serveCaller(exchange, requested, requested.requester)
}

/** Restarts at the filter that has asked for it. */
function recheckLater(exchange: Exchange, decision: Decision, { filter, check }: Recheck): () => void {
  return () => {
    decision.recheck = undefined
    decision.filters.rewind(decision, filter)
    settle(exchange, serveAdmitted(exchange, decision, check()))
  }
}

const NONE: readonly string[] = []

/** Answers a refused request; any other is on its way. */
function settle(exchange: Exchange, refusal: Refusal | undefined): void {
  if (refusal === undefined) return
  const { peer } = exchange
  // A certificate that failed verification in the handshake stays unverified on this connection: OpenSSL used the CAs of
  // that time, and uses the current ones only for a new connection. (kube-apiserver closes connections on every 401.)
  if (refusal.refused === 'unauthorized' && peer.certificate?.verified === false) peer.drain()
  // The same for the connection of a revoked certificate.
  else if (refusal.refused === 'revoked' && peer.certificate !== undefined) peer.drain()
  respond(exchange, refusal)
}

/** Resumes with a step's result once it is available. A step that doesn't have to wait calls the next one itself. */
function goOnLater<Known extends Asked, Found extends object>(
  exchange: Exchange,
  known: Known,
  found: Promise<Found | Refusal>,
  next: (exchange: Exchange, known: Known, found: Found) => Served,
): undefined {
  return wait(exchange, known, found, (late) => ('refused' in late ? late : next(exchange, known, late)))
}

/** Resumes when the answer arrives: the decision is as of then, and a user revoked meanwhile is not served. */
function wait<T>(
  exchange: Exchange,
  { live, requester, cameBy }: Asked,
  pending: Promise<T>,
  next: (found: T) => Served,
): undefined {
  pending
    .then((found) => {
      if (exchange.phase === 'over') return
      exchange.nowMs = exchange.gw.clock.now()
      exchange.monotonicMs = exchange.gw.clock.monotonic()
      nextStepAt(AT.decide, exchange.monotonicMs)
      workOn(exchange.record)
      settle(exchange, (requester && refuseSince(exchange, live, requester, cameBy)) ?? next(found))
      endStep(performance.now())
    })
    .catch((error: unknown) => onBug(exchange, error))
}

/** The sender was revoked meanwhile, or its session has ended, or a grant whose groups it has, or the member is none any more. */
function refuseSince(
  exchange: Exchange,
  live: LiveCluster,
  requester: Authenticated,
  cameBy: Decision | undefined,
): Refusal | undefined {
  return (
    refuseRevoked(live.compiled.authentication.revoked, requester) ??
    refuseEndedSession(exchange.gw, requester) ??
    refuseEndedGrant(exchange, requester) ??
    (cameBy && refuseNotHandedOver(exchange, cameBy, live.compiled.name, requester))
  )
}

/**
 * The cluster, and whether the connection may be used for it; or what the gateway is asked itself: which clusters there are, or to end the sessions of
 * a logout. Stores the target, without the `/clusters/<name>` prefix, in the exchange.
 */
function lookup(exchange: Exchange): LiveCluster | Refusal | 'list' | 'logout' {
  const { gw, peer, head } = exchange
  const { localAddress, localPort } = peer
  const found = lookupCluster(gw.clusters.index, { authority: head.host, target: head.target, localAddress, localPort })
  if (exchange.upgrade === undefined && asksForClusters(head.method, head.target, found)) return lookupList(exchange)
  if ('unknown' in found && exchange.upgrade === undefined && tellsOfLogout(head.method, head.target)) {
    exchange.target = originForm(head.target)
    return 'logout'
  }
  if ('unknown' in found) return refuse('unknown-cluster', unknownClusterMessage(found.unknown))
  // A connection whose TLS was set up for one cluster does not serve another (RFC 9110 section 15.5.20): its client
  // certificate was verified, and its server certificate shown, for the one named by SNI.
  if (peer.serverName !== '' && peer.tlsCluster !== '' && peer.tlsCluster !== found.cluster.name) {
    return refuse('misdirected', misdirectedMessage(peer.serverName, found.cluster.name))
  }
  const live = gw.clusters.get(found.cluster.name)
  if (live === undefined) return refuse('unknown-cluster', unknownClusterMessage(found.cluster.name))
  exchange.target = found.target
  return live
}

/** The client certificates of a cluster's own host name are verified by the CAs of that cluster alone. */
function lookupList(exchange: Exchange): Refusal | 'list' {
  const { peer, head } = exchange
  if (peer.serverName !== '' && peer.tlsCluster !== '') {
    return refuse('misdirected', misdirectedListMessage(peer.serverName))
  }
  exchange.target = originForm(head.target)
  return 'list'
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

/** Charges the user from here on, for the connection, too. */
function charge(exchange: Exchange, requester: Authenticated, cluster: CompiledCluster): Refusal | undefined {
  const { peer } = exchange
  const user = requester.chargeIn(cluster, peer)
  if (user.known) peer.charge = user
  return exchange.chargeTo(user) ?? exchange.bufferHead()
}

function identify(record: RequestRecord, requester: Authenticated, caller: Authenticated): void {
  record.user = caller.user.name
  record.groups = caller.user.groups
  record.uid = caller.user.uid
  record.extra = caller.user.extra
  if (caller === requester) return
  record.impersonator = requester.user.name
  record.impersonatorUid = requester.user.uid
  record.impersonatorGroups = requester.user.groups
  record.impersonatorExtra = requester.user.extra
}

/** Logs a bug with its stack; the client doesn't see the stack. */
function onBug(exchange: Exchange, error: unknown): void {
  const { gw, record } = exchange
  gw.log.error('request failed inside the gateway', { error, auditId: record.auditId, cluster: record.cluster })
  if (exchange.phase === 'over') return
  exchange.state.upstream?.cancel()
  if (record.code !== 0) {
    exchange.client.reset('internal')
    exchange.end()
    return
  }
  respond(exchange, refuse('internal', 'the gateway failed; its log has the details under this Audit-ID'))
}
