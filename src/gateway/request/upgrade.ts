// Upgrades (exec, attach, port-forward, cp, WebSocket): the same decisions and header fields as any request, then
// two joined sockets. Authorized before dialing: the identity can't change later.

import type { HeaderList, Stream } from '../../kit/api/stream.ts'
import type { ClientUpgrade } from '../../kit/api/upgrade.ts'
import { refuse } from '../../kit/core/refusal/refusal.ts'
import type { SessionEnd } from '../api/session-record.ts'
import { nothingSent, watchStarted } from '../core/admission/held.ts'
import { tryRetry } from '../core/endpoints/retry-budget.ts'
import { headersTooLargeMessage, noEndpointMessage, upstreamFailedMessage } from '../core/policy/traffic-messages.ts'
import { headerListBytes } from '../core/request/header-list.ts'
import { UPSTREAM_PSEUDO } from '../core/request/request-head.ts'
import { sessionProtocol } from '../core/request/session-request.ts'
import type { TappedSession } from '../core/request/session-tap.ts'
import { HTTP1_MAX_LIST_BYTES } from '../io/upstream/http1.ts'
import { type Splice, type SpliceEvents, spliceUpgrade } from '../io/upstream/upgrade-splice.ts'
import type { Endpoint } from '../state/endpoints.ts'
import { Attempt, selectEndpoint } from './exchange/attempt.ts'
import type { Permit } from './exchange/decision.ts'
import type { Exchange } from './exchange/exchange.ts'
import { respond } from './exchange/respond.ts'
import type { UpstreamHalf } from './exchange/state.ts'

const SWITCHING_PROTOCOLS = 101
const EMPTY = Buffer.alloc(0)
const UNTRIED: readonly string[] = []

/** The exchange ends with the connection, or once the request is answered. Only admission makes a permit. */
export function upgrade(exchange: Exchange, client: ClientUpgrade, permit: Permit): void {
  const headBytes =
    headerListBytes(exchange.head.fields) + headerListBytes(permit.caller.credentials(permit.cluster.client).list)
  if (headBytes > HTTP1_MAX_LIST_BYTES) {
    nothingSent(permit)
    const message = headersTooLargeMessage(exchange.record.cluster, HTTP1_MAX_LIST_BYTES)
    respond(exchange, refuse('headers-too-large', message))
    return
  }
  exchange.gw.running.add(exchange)
  if (send(exchange, client, permit, UNTRIED)) return
  nothingSent(permit)
  respond(exchange, refuse('no-endpoint', noEndpointMessage(exchange.record.cluster)))
}

function send(exchange: Exchange, client: ClientUpgrade, permit: Permit, tried: readonly string[]): boolean {
  const { gw, record, target } = exchange
  const nowMs = gw.clock.monotonic()
  const endpoint = selectEndpoint(gw, permit, nowMs, tried)
  const connections = endpoint === undefined ? undefined : gw.upstreams.get(permit.cluster.name, endpoint.url)
  if (endpoint === undefined || connections === undefined) return false
  const attempt = new UpgradeAttempt(client, exchange, permit, endpoint, tried, nowMs)
  exchange.upgrading(attempt)
  const fields = outgoingFields(exchange, permit, endpoint)
  attempt.nameSpan(fields)
  const { charge } = exchange
  attempt.splice = spliceUpgrade(connections, record.method, target, fields, client, charge, attempt, permit.tap)
  return true
}

/** Our fields come after the client's, so that no client field can stand in for them. */
function outgoingFields({ head, record }: Exchange, permit: Permit, { authority }: Endpoint): HeaderList {
  return [
    'host',
    authority,
    ...head.fields.slice(UPSTREAM_PSEUDO),
    ...permit.caller.credentials(permit.cluster.client).list,
    'audit-id',
    record.auditId,
    'connection',
    'Upgrade',
    'upgrade',
    head.upgrade,
  ]
}

class UpgradeAttempt extends Attempt implements SpliceEvents, TappedSession, UpstreamHalf {
  /** What the client sends is spliced or ignored. */
  readonly stream: Stream | undefined = undefined
  splice: Splice | undefined = undefined
  readonly #client: ClientUpgrade

  constructor(client: ClientUpgrade, ...attempt: ConstructorParameters<typeof Attempt>) {
    super(...attempt)
    this.#client = client
  }

  onSwitched(head: HeaderList): boolean {
    const exchange = this.exchange
    const refusal = this.permit.tap?.begin(head, this)
    if (refusal !== undefined) {
      this.leave()
      respond(exchange, refusal)
      return false
    }
    exchange.record.session = { protocol: sessionProtocol(head), endedBy: '', report: undefined }
    exchange.upgraded()
    this.answered(SWITCHING_PROTOCOLS)
    watchStarted(this.permit)
    exchange.gw.events.responseStarted(exchange.record)
    return true
  }

  onResponse(head: HeaderList): void {
    this.answered(Number(head[1]))
    this.exchange.client.headers(this.clientHead(head), false)
  }

  onBody(chunk: Buffer): void {
    this.exchange.record.responseBytes += chunk.length
    this.exchange.record.audit?.responseBody(chunk)
    this.exchange.client.body(chunk, false)
    this.exchange.chargeAnswer()
  }

  onWaiting(): void {
    const { exchange } = this
    const { client } = exchange
    if (client.meter === undefined) exchange.chargeAnswer()
    else client.meter.onQueued(client.queued)
  }

  onBodyEnd(): void {
    this.exchange.client.body(EMPTY, true)
    this.exchange.end()
  }

  /** Only a request of which no byte was sent may be retried on another endpoint. */
  onFailed(error: Error, sent: boolean): void {
    const exchange = this.exchange
    const { gw, record } = exchange
    if (exchange.phase === 'over') return
    this.failed(sent ? 'broken' : 'refused')
    this.leave()
    gw.log.debug('upgrade failed', { cluster: record.cluster, endpoint: record.endpoint, error: error.message })
    if (!sent && !exchange.gone && tryRetry(this.permit.live.retryBudget, gw.clock.monotonic())) {
      if (send(exchange, this.#client, this.permit, this.tried)) {
        gw.events.retried(record.cluster, 'refused')
        return
      }
    }
    respond(exchange, refuse('upgrade-failed', upstreamFailedMessage(record.cluster)))
  }

  onClosed(fromClient: number, toClient: number, endedBy: SessionEnd | ''): void {
    const { record } = this.exchange
    if (record.session !== undefined) {
      record.session.endedBy = endedBy
      record.session.report = this.permit.tap?.end(endedBy)
    }
    record.requestBytes = fromClient
    record.responseBytes = toClient
    this.exchange.end()
  }

  onReady(): void {
    this.splice?.goOn()
  }

  onBroken(): void {
    this.exchange.abort()
  }

  cancel(): void {
    this.splice?.abort()
  }
}
