// Upgrades (exec, attach, port-forward, cp, WebSocket): the same decisions and the same header function as any request, then
// two sockets joined. Authorised before dialling: the identity cannot change later.

import type { RequestRecord } from '../api/request-record.ts'
import type { HeaderList, Stream, StreamEvents } from '../api/stream.ts'
import type { ClientUpgrade } from '../api/upgrade.ts'
import { clientResponseHeaders, headerValue } from '../core/hop-headers.ts'
import { refuse } from '../core/refusal.ts'
import { tryRetry } from '../core/retry-budget.ts'
import { noEndpointMessage, upstreamFailedMessage } from '../core/traffic-messages.ts'
import { warningValue } from '../core/warning.ts'
import { type Splice, spliceUpgrade } from '../io/upgrade-splice.ts'
import type { RunningRequest } from '../state/running.ts'
import type { Permit } from './admit.ts'
import type { Gateway } from './gateway.ts'
import type { OutgoingRequest } from './outgoing.ts'
import type { RequestBody } from './request-body.ts'
import { respond } from './respond.ts'
import { type Selected, type Selection, selectEndpoint } from './select-endpoint.ts'

export interface Upgrading {
  readonly client: ClientUpgrade
  /** For every answer but 101. */
  readonly answer: Stream
  readonly body: RequestBody
  readonly record: RequestRecord
  readonly request: OutgoingRequest
  /** The protocol asked for, as the client wrote it. */
  readonly protocol: string
  readonly selection: Selection
}

const SWITCHING_PROTOCOLS = 101
const EMPTY = Buffer.alloc(0)

/** Resolves when the connection is over, or the request was answered. Never rejects. */
export function upgrade(gw: Gateway, upgrading: Upgrading, permit: Permit): Promise<void> {
  return new Promise((resolve) => {
    const exchange = new UpgradeExchange(gw, upgrading, permit, resolve)
    gw.running.add(exchange)
    exchange.start()
  })
}

class UpgradeExchange implements RunningRequest {
  readonly #gw: Gateway
  readonly #upgrading: Upgrading
  readonly #permit: Permit
  readonly #done: () => void
  readonly #tried = new Set<string>()
  #endpoint: Selected | undefined
  #splice: Splice | undefined
  #switched = false
  #over = false
  #sentAtMs = 0
  readonly longRunning = true

  constructor(gw: Gateway, upgrading: Upgrading, permit: Permit, done: () => void) {
    this.#gw = gw
    this.#upgrading = upgrading
    this.#permit = permit
    this.#done = done
  }

  get cluster(): string {
    return this.#upgrading.record.cluster
  }

  get endpoint(): string {
    return this.#upgrading.record.endpoint
  }

  start(): void {
    if (!this.#send()) {
      this.#permit.nothingSent()
      this.#refuse('no-endpoint')
      return
    }
    this.#upgrading.body.drainTo(this.#fromClient)
  }

  /** Of the client only its going matters here: what it sends is spliced, or ignored. */
  readonly #fromClient: StreamEvents = {
    onHeaders: () => undefined,
    onBody: () => undefined,
    onTrailers: () => undefined,
    onDrained: () => undefined,
    onReset: () => this.#onClientGone(),
  }

  /** Before the sockets were joined nobody else tells it; afterwards the splice does. */
  #onClientGone(): void {
    if (this.#over || this.#switched) return
    this.#upgrading.record.aborted = 'client'
    this.cut()
  }

  #send(): boolean {
    const { selection, record, request, protocol, client } = this.#upgrading
    const selected = selectEndpoint(this.#gw, selection, this.#tried)
    if (selected === undefined) return false
    this.#endpoint = selected
    const { url } = selected.endpoint
    this.#tried.add(url)
    record.endpoint = url
    record.attempts++
    selected.endpoint.started()
    this.#sentAtMs = this.#gw.clock.monotonic()
    const authority = url.slice(url.indexOf('//') + 2)
    const fields: HeaderList = ['host', authority, ...request.fields, 'connection', 'Upgrade', 'upgrade', protocol]
    this.#splice = spliceUpgrade(selected.upstream, request.method, request.target, fields, client, {
      onSwitched: () => this.#onSwitched(),
      onResponse: (head) => this.#onResponse(head),
      onBody: (chunk) => {
        record.responseBytes += chunk.length
        this.#upgrading.answer.body(chunk, false)
      },
      onBodyEnd: () => {
        this.#upgrading.answer.body(EMPTY, true)
        this.#close()
      },
      onFailed: (error, sent) => this.#onFailed(error, sent),
      onClosed: (fromClient, toClient) => {
        record.requestBytes = fromClient
        record.responseBytes = toClient
        this.#close()
      },
    })
    return true
  }

  #answered(record: RequestRecord): void {
    const nowMs = this.#gw.clock.monotonic()
    record.ttfbMs = nowMs - record.startMs
    record.upstreamMs = nowMs - this.#sentAtMs
  }

  #onSwitched(): void {
    this.#switched = true
    const { record, selection } = this.#upgrading
    record.code = SWITCHING_PROTOCOLS
    this.#answered(record)
    this.#permit.watchStarted()
    this.#gw.events.responseStarted(record)
    if (this.#endpoint !== undefined)
      selection.live.endpoints.onSuccess(this.#endpoint.endpoint, this.#gw.clock.monotonic())
  }

  #onResponse(head: HeaderList): void {
    const { record, answer } = this.#upgrading
    record.code = Number(head[1])
    this.#answered(record)
    const fields = clientResponseHeaders(head)
    if (headerValue(fields, 'audit-id') === undefined) fields.push('audit-id', record.auditId)
    for (const warning of this.#permit.warnings) fields.push('warning', warningValue(warning))
    answer.headers(fields, false)
  }

  /** Only a request of which no byte was sent may go to another endpoint. */
  #onFailed(error: Error, sent: boolean): void {
    const { selection, record, body } = this.#upgrading
    this.#leaveEndpoint()
    this.#gw.log.debug('upgrade failed', { cluster: record.cluster, endpoint: record.endpoint, error: error.message })
    const nowMs = this.#gw.clock.monotonic()
    if (!sent && !body.gone && tryRetry(selection.live.retryBudget, nowMs) && this.#send()) {
      this.#gw.events.retried(record.cluster, 'refused')
      return
    }
    this.#refuse('upgrade-failed')
  }

  #refuse(reason: 'no-endpoint' | 'upgrade-failed'): void {
    const { answer, body, record } = this.#upgrading
    const message = reason === 'no-endpoint' ? noEndpointMessage(record.cluster) : upstreamFailedMessage(record.cluster)
    respond(answer, body, record, refuse(reason, message))
    this.#close()
  }

  finish(): void {
    this.cut()
  }

  cut(): void {
    this.#splice?.cut()
    this.#close()
  }

  #leaveEndpoint(): void {
    if (this.#endpoint !== undefined) this.#endpoint.endpoint.ended()
    this.#endpoint = undefined
  }

  #close(): void {
    if (this.#over) return
    this.#over = true
    this.#leaveEndpoint()
    this.#gw.running.remove(this)
    this.#done()
  }
}
