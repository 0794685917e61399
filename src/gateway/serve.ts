// The spine: the way of one request, top to bottom. Start reading here.
// Every step returns its value or a Refusal; a thrown error is a bug or a broken wire, and is answered once, at the end.

import { createRecord, type RequestRecord } from '../api/request-record.ts'
import type { HeaderList, Peer, RequestHandler, Stream, StreamEvents } from '../api/stream.ts'
import type { ClientUpgrade, UpgradeHandler } from '../api/upgrade.ts'
import { headerValue, requestHeadersProblem } from '../core/hop-headers.ts'
import { isLongRunning, isWatch } from '../core/long-running.ts'
import { matchPolicy } from '../core/match-policy.ts'
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts'
import { noPolicyMessage } from '../core/refusal-messages.ts'
import { parseRequestInfo, type RequestInfo } from '../core/request-info.ts'
import { onRequest as countForRetries } from '../core/retry-budget.ts'
import { upgradeUnsupportedMessage } from '../core/traffic-messages.ts'
import { admit } from './admit.ts'
import { type Authenticated, authenticate } from './authenticate.ts'
import { forward } from './forward.ts'
import type { Gateway } from './gateway.ts'
import { impersonate } from './impersonation.ts'
import { lookup } from './lookup.ts'
import { outgoingRequest } from './outgoing.ts'
import { RequestBody } from './request-body.ts'
import { respond } from './respond.ts'
import type { Selection } from './select-endpoint.ts'
import { upgrade } from './upgrade.ts'

/** One request on its way. */
interface Serving {
  readonly peer: Peer
  readonly stream: Stream
  readonly head: HeaderList
  readonly body: RequestBody
  readonly record: RequestRecord
  /** The socket, when the client asks to upgrade. */
  readonly upgrade: ClientUpgrade | undefined
}

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
  const body = new RequestBody(stream, end)
  const record = startRecord(gw, peer, head)
  serve(gw, { peer, stream, head, body, record, upgrade: client })
    .catch((error: unknown) => onBug(gw, stream, body, record, error))
    .finally(() => {
      record.durationMs = gw.clock.monotonic() - record.startMs
      gw.events.requestEnded(record)
    })
  return body
}

/** The straight line. */
async function serve(gw: Gateway, serving: Serving): Promise<void> {
  const { peer, stream, head, body, record } = serving
  const refused = (refusal: Refusal): void => {
    // A certificate that the handshake did not verify never will be on this connection: OpenSSL checked it against the CAs
    // of then, and checks it against those of now on a new one. (kube-apiserver closes connections on every 401.)
    if (refusal.refused === 'unauthorized' && peer.certificate?.verified === false) peer.drain()
    respond(stream, body, record, refusal)
  }

  const problem = requestHeadersProblem(head)
  if (problem !== '') return refused(refuse('bad-request', problem))

  const destination = lookup(gw, peer, record.host, record.target)
  if (isRefusal(destination)) return refused(destination)
  const { live, target } = destination
  const cluster = live.compiled
  record.cluster = cluster.name
  record.clusterLogMode = cluster.logMode
  if (cluster.closeWhenIdle) peer.drain()

  const info = parseRequestInfo(record.method, target)
  if ('failure' in info) return refused(refuse(info.code === 400 ? 'bad-request' : 'request-info', info.failure))
  describe(record, info)
  gw.events.requestStarted(record)

  const requestor = await authenticate(gw, peer, head, live)
  if (isRefusal(requestor)) return refused(requestor)
  const caller = await impersonate(gw, live, head, requestor)
  if (isRefusal(caller)) return refused(caller)
  identify(record, requestor, caller)

  const matched = matchPolicy(cluster.policies, info, caller.user, record.userAgent)
  const policy = matched === undefined ? undefined : cluster.policies[matched.policy]
  if (matched === undefined || policy === undefined) {
    return refused(refuse('no-policy', noPolicyMessage(caller.user, info, cluster.name)))
  }
  record.policy = matched.policy
  record.rule = matched.rule
  record.policyLogMode = policy.logMode
  record.flowControl = cluster.schemas[policy.schema]?.name ?? ''

  const watch = isWatch(info)
  const permitted = admit({
    live,
    cluster,
    policy,
    rule: matched.rule,
    info,
    user: caller.user,
    userAgent: record.userAgent,
    remoteAddress: peer.remoteAddress,
    isWatch: watch,
    nowMs: gw.clock.now(),
    monotonicMs: gw.clock.monotonic(),
    held: undefined,
  })
  if (isRefusal(permitted)) return refused(permitted)
  using permit = permitted
  record.shadow = permit.shadow

  if (body.gone) {
    record.aborted = 'client'
    return
  }
  countForRetries(live.retryBudget, gw.clock.monotonic())
  const request = outgoingRequest(cluster, peer, head, record.method, target, caller, record.auditId)
  const selection: Selection = {
    live,
    cluster,
    policy,
    user: caller.user.name,
    remoteAddress: peer.remoteAddress,
  }
  if (serving.upgrade !== undefined) {
    const protocol = headerValue(head, 'upgrade') ?? ''
    await upgrade(gw, { client: serving.upgrade, answer: stream, body, record, request, protocol, selection }, permit)
    return
  }
  if (needsUpgrade(info)) return refused(refuse('upgrade-unsupported', upgradeUnsupportedMessage()))
  const kind = caller.kind === 'anonymous' ? 'anonymous' : record.longRunning ? 'watch' : 'unary'
  await forward(gw, { client: stream, body, record, request, selection, kind, isWatch: watch }, permit)
}

/** exec, attach and port-forward are nothing without an upgrade; a proxied request may be an ordinary one. */
function needsUpgrade(info: RequestInfo): boolean {
  if (!info.isResourceRequest || info.resource !== 'pods') return false
  return info.subresource === 'exec' || info.subresource === 'attach' || info.subresource === 'portforward'
}

function startRecord(gw: Gateway, peer: Peer, head: HeaderList): RequestRecord {
  const record = createRecord()
  record.startMs = gw.clock.monotonic()
  record.startWallMs = gw.clock.now()
  record.protocol = peer.protocol
  record.remoteAddress = peer.remoteAddress
  for (let i = 0; i + 1 < head.length; i += 2) {
    const value = head[i + 1] ?? ''
    switch (head[i]) {
      case ':method':
        record.method = value
        break
      case ':path':
        record.target = value
        break
      case ':authority':
        record.host = value
        break
      case 'host':
        if (record.host === '') record.host = value
        break
      case 'user-agent':
        record.userAgent = value
        break
      case 'audit-id':
        record.auditId = value
        break
      default:
    }
  }
  if (!isUsableAuditId(record.auditId)) record.auditId = gw.uuid()
  return record
}

const MAX_AUDIT_ID = 128

/** As kube-apiserver takes it from the client; anything that could not be a log field is replaced. */
function isUsableAuditId(id: string): boolean {
  return id !== '' && id.length <= MAX_AUDIT_ID && /^[\x21-\x7e]+$/.test(id)
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
function onBug(gw: Gateway, stream: Stream, body: RequestBody, record: RequestRecord, error: unknown): void {
  gw.log.error('request failed inside the gateway', { error, auditId: record.auditId, cluster: record.cluster })
  if (record.code !== 0) {
    stream.reset('internal')
    return
  }
  respond(stream, body, record, refuse('internal', 'the gateway failed; its log has the details under this Audit-ID'))
}
