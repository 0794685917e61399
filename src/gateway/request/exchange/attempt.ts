// One attempt to send a request to one endpoint, and which endpoint that is: common to forwarding and upgrades.

import type { HeaderList } from '../../../kit/api/stream.ts'
import { warningValue } from '../../../kit/core/refusal/warning.ts'
import { AT, nextStepAt, workOn } from '../../../kit/io/stalls/steps.ts'
import type { TraceAttempt } from '../../api/request-trace.ts'
import type { EndpointHealth } from '../../core/endpoints/endpoint-health.ts'
import { affinityHash, PICKERS } from '../../core/endpoints/pick-endpoint.ts'
import { clientResponseHeaders, headerValue } from '../../core/request/hop-headers.ts'
import { formatTraceparent, setTraceparent } from '../../core/request/trace-context.ts'
import type { Endpoint } from '../../state/endpoints.ts'
import type { Permit } from './decision.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'

/**
 * Impersonation is authorized before priority and fairness adds its fields, the user's own request after it
 * (apiserver/pkg/server/config.go, DefaultBuildHandlerChain). A hint, not a proof: both may be disabled, or left out for exec.
 */
function isBeforePriorityLevels(list: HeaderList): boolean {
  return headerValue(list, 'x-kubernetes-pf-flowschema-uid') === undefined
}

export abstract class Attempt {
  protected readonly exchange: Exchange
  protected readonly permit: Permit
  readonly #endpoint: Endpoint
  /** Endpoints (by URL) that already had the request. */
  readonly #tried: readonly string[]
  readonly #sentAtMs: number
  /** Set if the request is traced. */
  readonly #traced: TraceAttempt | undefined
  #counted = true

  constructor(exchange: Exchange, permit: Permit, endpoint: Endpoint, tried: readonly string[], nowMs: number) {
    this.exchange = exchange
    this.permit = permit
    this.#endpoint = endpoint
    this.#tried = tried
    this.#sentAtMs = nowMs
    exchange.record.endpoint = endpoint.url
    exchange.record.attempts++
    this.#traced = exchange.record.trace === undefined ? undefined : beginTraced(exchange, endpoint.url, nowMs)
    endpoint.started()
  }

  /** Makes this attempt's span, in `fields`, the parent of what upstream records. */
  nameSpan(fields: HeaderList): void {
    const { trace } = this.exchange.record
    if (trace === undefined || this.#traced === undefined) return
    setTraceparent(fields, formatTraceparent(trace.traceId, this.#traced.spanId, true))
  }

  /** For the trace: why there is no answer, or no complete one. */
  protected failed(error: string): void {
    if (this.#traced !== undefined) this.#traced.error = error
  }

  /** Called on a response head: the endpoint works. @returns monotonic milliseconds */
  protected answered(code: number): number {
    this.exchange.record.code = code
    const nowMs = this.answeredNow()
    if (this.#traced !== undefined) {
      this.#traced.code = code
      this.#traced.headMs = nowMs
    }
    this.permit.live.endpoints.onSuccess(this.#endpoint, nowMs, code)
    if (this.exchange.onOutcome !== undefined) this.exchange.tellOutcome(code)
    return nowMs
  }

  /** Upstream's time ends here: the client gets its answer now. Monotonic milliseconds. */
  protected answeredNow(): number {
    const { gw, record } = this.exchange
    const nowMs = gw.clock.monotonic()
    nextStepAt(AT.answer, nowMs)
    workOn(record)
    record.ttfbMs = nowMs - record.startMs
    record.upstreamMs = nowMs - this.#sentAtMs
    return nowMs
  }

  /** The client has not received any part of the response. */
  protected unanswered(): void {
    const { record } = this.exchange
    record.code = 0
    record.ttfbMs = -1
    record.upstreamMs = -1
  }

  /** Response head as sent to the client. */
  protected clientHead(list: HeaderList): HeaderList {
    const head = clientResponseHeaders(list)
    if (headerValue(head, 'audit-id') === undefined) head.push('audit-id', this.exchange.record.auditId)
    const { warnings } = this.permit
    for (let i = 0; i < warnings.length; i++) head.push('warning', warningValue(warnings[i] ?? ''))
    if (this.exchange.record.code === 403 && this.#showsPriorityLevels && isBeforePriorityLevels(list)) {
      this.#gatewayRefused(head)
    }
    return head
  }

  /**
   * Priority and fairness skips long-running requests other than watches (apiserver/pkg/server/filters/priority-and-fairness.go): without
   * its fields there, the answer is from a pod behind proxy, or a refusal of the user.
   */
  get #showsPriorityLevels(): boolean {
    return this.permit.isWatch || !this.exchange.longRunning
  }

  /** Warns the client of the cause if it is known; the event triggers the check that finds it. */
  #gatewayRefused(head: HeaderList): void {
    const { name } = this.permit.cluster
    const { credentialFault } = this.permit.live
    this.exchange.gw.events.gatewayRefused(name)
    if (credentialFault === '') return
    head.push('warning', warningValue(`cluster "${name}" refuses the gateway, not you: ${credentialFault}`))
  }

  /** Endpoints that have had the request by now. */
  protected get tried(): readonly string[] {
    return [...this.#tried, this.#endpoint.url]
  }

  /** The endpoint stops counting this request. */
  leave(): void {
    if (!this.#counted) return
    this.#counted = false
    this.#endpoint.ended()
    if (this.#traced !== undefined) this.#traced.endMs = this.exchange.gw.clock.monotonic()
  }
}

function beginTraced({ gw, record: { trace } }: Exchange, endpoint: string, pickMs: number): TraceAttempt | undefined {
  if (trace === undefined || gw.tracer === undefined) return undefined
  const sentMs = gw.clock.monotonic()
  const spanId = gw.tracer.newSpanId()
  const attempt: TraceAttempt = { spanId, endpoint, pickMs, sentMs, headMs: -1, endMs: -1, code: 0, error: '' }
  trace.attempts.push(attempt)
  return attempt
}

const NONE: readonly string[] = []

/**
 * A ready endpoint of the policy, by the policy's strategy.
 * @param tried endpoints (by URL) that have already failed for this request
 */
export function selectEndpoint(
  gw: Gateway,
  permit: Permit,
  monotonicMs: number,
  tried: readonly string[] = NONE,
): Endpoint | undefined {
  const { live, cluster, policy } = permit
  const { endpoints, cursor } = live.endpoints.candidates(cluster.endpoints, policy, monotonicMs)
  const left = tried.length === 0 ? endpoints : endpoints.filter((endpoint) => !tried.includes(endpoint.url))
  const hash = policy.strategy === 'Affinity' ? affinityHash(permit.user.name, permit.remoteAddress) : 0
  const at = PICKERS[policy.strategy](left, { random: gw.random, cursor, affinityHash: hash })
  return left[at] ?? leastBusy(left, 'healthy') ?? leastBusy(left, 'unknown')
}

/**
 * Fallbacks. A healthy endpoint in backoff, if this request has seen the others fail: the last one
 * is never in backoff. Or one not checked yet: right after a cluster is added, or all its endpoints
 * are replaced, requests need not be refused until the first checks are in.
 */
function leastBusy(endpoints: readonly Endpoint[], state: EndpointHealth['state']): Endpoint | undefined {
  let best: Endpoint | undefined
  for (const endpoint of endpoints) {
    if (!endpoint.enabled || endpoint.health.state !== state) continue
    if (best === undefined || endpoint.inFlight < best.inFlight) best = endpoint
  }
  return best
}
