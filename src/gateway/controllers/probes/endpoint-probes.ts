// Health checks of all endpoints: GET of the probe path at the interval, at once for a new endpoint, and soon after its cluster has
// changed or a connection broke. Probes use the same kind of connection as requests, so that they hang when requests hang.

import type { Clock, Logger } from '../../../kit/api/ports.ts'
import type { HeaderList } from '../../../kit/api/stream.ts'
import { clusterCharge } from '../../../kit/core/shares/charge.ts'
import { TEXT } from '../../../kube/core/answers/answer-limits.ts'
import { KubeCallError, NoAnswerError } from '../../../kube/core/answers/call-errors.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { headerValue, headerValues } from '../../core/request/hop-headers.ts'
import { kubeCall } from '../../io/upstream/kube-call.ts'
import type { Upstreams } from '../../io/upstream/upstreams.ts'
import type { ClusterTable, LiveCluster } from '../../state/clusters.ts'
import type { Endpoint } from '../../state/endpoints.ts'
import { EndpointProber, type ProberDeps } from './endpoint-prober.ts'
import { createProbeGate } from './probe-gate.ts'

export interface ProbeEvents {
  /**
   * The API server itself answered, with any status; not called if a proxy may have set the date.
   * @param date its header field `Date`
   * @param sentMs when the probe was sent, monotonic
   */
  answered(cluster: CompiledCluster, endpoint: string, date: string, sentMs: number, receivedMs: number): void
  probed(cluster: string, endpoint: string, healthy: boolean): void
}

export interface EndpointProbes {
  /** Applies a change of the cluster table: probes new endpoints at once and those of changed clusters soon; stops probing removed ones. */
  change(changed: readonly CompiledCluster[], removed: readonly string[]): void
  /**
   * A connection to the endpoint broke: probe it soon, unless it is already out of service. At most once until the next
   * regular probe.
   */
  probeNow(cluster: string, endpoint: string): void
  /** Resolves when every endpoint was probed once, or after 3 s, so that silent endpoints don't delay the others. */
  firstRound(): Promise<void>
  stop(): void
}

const FIRST_ROUND_MS = 3_000
/** 502, 503 and 504 come from a proxy in front of the API server, dated by its own clock. */
const FIRST_OF_PROXIES = 502
/** Fields set by proxies, many of which set the date themselves, and by caches; a kube-apiserver never sends them. */
const OF_PROXIES = ['via', 'server', 'age']

export function startEndpointProbes(
  clusters: ClusterTable,
  upstreams: Pick<Upstreams, 'get'>,
  clock: Clock,
  random: () => number,
  log: Logger,
  events: ProbeEvents,
): EndpointProbes {
  /** @returns whether no problem with the endpoint is known: the check succeeded, or doesn't count */
  const report = (live: LiveCluster, endpoint: Endpoint, { message, late }: Probed, sentMs: number): boolean => {
    const before = endpoint.health.state
    const { healthCheck } = live.compiled
    const good = message === ''
    const lateSinceMs = late ? sentMs : undefined
    const counts = live.endpoints.onProbe(endpoint, good, message, healthCheck, clock.monotonic(), lateSinceMs)
    const after = endpoint.health.state
    events.probed(live.compiled.name, endpoint.url, after === 'healthy')
    const passed = good || !counts
    if (before === after) return passed
    const fields = { cluster: live.compiled.name, endpoint: endpoint.url, from: before, to: after, reason: message }
    if (after === 'unhealthy') log.warn('endpoint health changed', fields)
    else log.info('endpoint health changed', fields)
    return passed
  }
  const probeOne = async (prober: EndpointProber): Promise<boolean> => {
    const live = clusters.get(prober.cluster)
    const endpoint = live?.endpoints.byUrl(prober.url)
    if (live === undefined || endpoint === undefined) return false
    const sentMs = clock.monotonic()
    const probed = await probe(live, endpoint, upstreams)
    const { message, date } = probed
    if (date !== undefined && !prober.stopped) {
      events.answered(live.compiled, endpoint.url, date, sentMs, clock.monotonic())
    }
    return prober.stopped ? message === '' : report(live, endpoint, probed, sentMs)
  }
  return new AllProbes(probeOne, random)
}

class AllProbes implements EndpointProbes {
  readonly #deps: ProberDeps
  /** By cluster, then URL. */
  readonly #probers = new Map<string, ReadonlyMap<string, EndpointProber>>()
  /** Endpoints that were not probed yet. */
  #unprobed = 0
  /** Callers waiting for the first round, with their deadlines. */
  readonly #waiters = new Map<() => void, NodeJS.Timeout>()

  constructor(probe: ProberDeps['probe'], random: () => number) {
    const gate = createProbeGate<EndpointProber>((prober) => void prober.run())
    this.#deps = { probe, random, gate, firstOver: () => this.#onFirstOver() }
  }

  change(changed: readonly CompiledCluster[], removed: readonly string[]): void {
    for (const name of removed) this.#keepOnly(name, new Map())
    for (const compiled of changed) {
      const before = this.#probers.get(compiled.name)
      const after = new Map<string, EndpointProber>()
      for (const { url } of compiled.endpoints) {
        const known = before?.get(url)
        known?.follow(compiled)
        if (known === undefined) this.#unprobed++
        after.set(url, known ?? new EndpointProber(compiled, url, this.#deps))
      }
      this.#keepOnly(compiled.name, after)
    }
  }

  #keepOnly(cluster: string, after: ReadonlyMap<string, EndpointProber>): void {
    const before = this.#probers.get(cluster) ?? new Map<string, EndpointProber>()
    if (after.size === 0) this.#probers.delete(cluster)
    else this.#probers.set(cluster, after)
    for (const [url, prober] of before) if (!after.has(url)) prober.stop()
  }

  probeNow(cluster: string, endpoint: string): void {
    this.#probers.get(cluster)?.get(endpoint)?.broke()
  }

  firstRound(): Promise<void> {
    if (this.#unprobed === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const deadline = setTimeout(() => {
        this.#waiters.delete(resolve)
        resolve()
      }, FIRST_ROUND_MS)
      this.#waiters.set(resolve, deadline)
    })
  }

  #onFirstOver(): void {
    this.#unprobed--
    if (this.#unprobed > 0) return
    for (const [resolve, deadline] of this.#waiters) {
      clearTimeout(deadline)
      resolve()
    }
    this.#waiters.clear()
  }

  stop(): void {
    for (const probers of this.#probers.values()) for (const prober of probers.values()) prober.stop()
    this.#probers.clear()
  }
}

/**
 * A kube-apiserver sets an Audit-Id on every response, including health checks and 401 (apiserver/pkg/endpoints/filters/audit_init.go), and
 * exactly one Date.
 */
function ownDate(head: HeaderList | undefined): string | undefined {
  if (head === undefined || headerValue(head, 'audit-id') === undefined) return undefined
  if (OF_PROXIES.some((name) => headerValue(head, name) !== undefined)) return undefined
  const [date, ...others] = headerValues(head, 'date')
  return others.length === 0 ? date : undefined
}

interface Probed {
  /** '' if healthy, otherwise the reason. */
  readonly message: string
  /** From the API server's clock; undefined = it didn't answer, or a proxy may have set the date. */
  readonly date: string | undefined
  /** The probe timed out. */
  readonly late: boolean
}

async function probe(live: LiveCluster, endpoint: Endpoint, upstreams: Pick<Upstreams, 'get'>): Promise<Probed> {
  const cluster = live.compiled
  const upstream = upstreams.get(cluster.name, endpoint.url)
  const failed = (message: string, late = false): Probed => ({ message, date: undefined, late })
  if (upstream === undefined) return failed('no connection')
  try {
    const answer = await kubeCall(upstream, {
      method: 'GET',
      path: cluster.healthCheck.path,
      authority: endpoint.authority,
      token: cluster.client.bearerToken,
      timeoutMs: cluster.healthCheck.timeoutMs,
      limits: TEXT,
      payer: clusterCharge(cluster.name),
    })
    const message = answer.status === 200 ? '' : `answered with ${answer.status}`
    return { message, date: answer.status < FIRST_OF_PROXIES ? ownDate(answer.head) : undefined, late: false }
  } catch (error) {
    if (error instanceof KubeCallError) return failed(error.message, error instanceof NoAnswerError)
    throw error
  }
}
