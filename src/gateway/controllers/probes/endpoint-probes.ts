// Health checks of all endpoints: GET of the probe path at the interval, at once for a new endpoint, and soon after its cluster has
// changed or a connection broke. Probes use the same kind of connection as requests, so that they hang when requests hang.

import type { Clock, Logger } from '../../../kit/api/ports.ts'
import type { HeaderList } from '../../../kit/api/stream.ts'
import { Queued } from '../../../kit/core/queues/round-robin-queue.ts'
import { clusterCharge } from '../../../kit/core/shares/charge.ts'
import { TEXT } from '../../../kube/core/answers/answer-limits.ts'
import { KubeCallError, NoAnswerError } from '../../../kube/core/answers/call-errors.ts'
import type { CompiledCluster, CompiledHealthCheck } from '../../core/cluster/compiled-cluster.ts'
import { headerValue, headerValues } from '../../core/request/hop-headers.ts'
import { IDLE_CLOSE_MS } from '../../io/upstream/http2-connection.ts'
import { kubeCall } from '../../io/upstream/kube-call.ts'
import type { Upstreams } from '../../io/upstream/upstreams.ts'
import type { ClusterTable, LiveCluster } from '../../state/clusters.ts'
import type { Endpoint } from '../../state/endpoints.ts'
import { createProbeGate, type ProbeGate } from './probe-gate.ts'

/** Each interval varies by this fraction, so that many gateways don't probe at the same moment. */
const JITTER = 0.1
/** First probes start at once. Second ones are spread from this fraction of the interval to the whole. */
const EARLIEST_SECOND = 0.5
/** A probe follows a broken connection after this delay, so that many broken connections cause one probe. */
const REPROBE_DELAY_MS = 100

interface ProbeEvents {
  /**
   * The API server itself answered, with any status; not called if a proxy may have set the date.
   * @param date its header field `Date`
   * @param sentMs when the probe was sent, monotonic
   */
  answered(cluster: CompiledCluster, endpoint: string, date: string, sentMs: number, receivedMs: number): void
  probed(cluster: string, endpoint: string, healthy: boolean): void
}

const FIRST_ROUND_MS = 3_000
/** After this long, ports need not wait for checks that have not begun because there are so many. */
const CROWDED_MS = 250
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
  return new EndpointProbes(probeOne, random)
}

/** Long enough for what a first check leads to (rights), so that one connection does for both. */
const UNUSED_CLOSE_MS = 500

/**
 * After how long the main thread closes a connection without requests: at once if the next probe would come too late for it anyway. With TLS one
 * takes 80 KiB, which counts with thousands of clusters.
 */
export function probeIdleMs({ intervalMs = 0 }: Partial<CompiledHealthCheck> = {}): number {
  return intervalMs * (1 - JITTER) > IDLE_CLOSE_MS ? UNUSED_CLOSE_MS : IDLE_CLOSE_MS
}

export class EndpointProbes {
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

  /** Applies a change of the cluster table: probes new endpoints at once and those of changed clusters soon; stops probing removed ones. */
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

  /**
   * A connection to the endpoint broke: probe it soon, unless it is already out of service. At most once until the next
   * regular probe.
   */
  probeNow(cluster: string, endpoint: string): void {
    this.#probers.get(cluster)?.get(endpoint)?.broke()
  }

  /** Requests wait for the first check of one of its endpoints. */
  awaited(cluster: string): void {
    for (const prober of this.#probers.get(cluster)?.values() ?? []) prober.awaited()
  }

  /**
   * Resolves when requests may come: after the first round, which does not have to include those of thousands of endpoints that can't be checked
   * at once. Requests wait for these (`EndpointSet.unchecked`).
   */
  async mayServe(): Promise<void> {
    const firstRound = this.firstRound()
    await Promise.race([firstRound, new Promise((resolve) => setTimeout(resolve, CROWDED_MS).unref())])
    if (!this.#deps.gate.isCrowded) await firstRound
  }

  /** Resolves when every endpoint was probed once, or after 3 s, so that silent endpoints don't delay the others. */
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

/** Shared by all probers. */
interface ProberDeps {
  /** Probes the endpoint and reports the outcome, unless it is no longer listed. Resolves with whether it was healthy. */
  probe(prober: EndpointProber): Promise<boolean>
  /** Called once, when the first probe has ended or will not happen. */
  firstOver(): void
  /** In [0, 1). */
  random(): number
  /** Limits early probes, of which there can be thousands at once. */
  readonly gate: ProbeGate<EndpointProber>
}

/**
 * Runs the health checks of one endpoint, one at a time: at the cluster's interval, and early after a change. A dead
 * endpoint costs one probe per interval: its own failure doesn't trigger another probe.
 */
class EndpointProber extends Queued {
  readonly url: string
  readonly #deps: ProberDeps
  #compiled: CompiledCluster
  #timer: NodeJS.Timeout | undefined
  #running = false
  /** The next probe, or the running one, is early. */
  #early = false
  /** Set while a probe is running, which may have seen the earlier state. */
  #brokeDuringProbe = false
  #changedDuringProbe = false
  /** The last regular probe succeeded, and no broken connection has caused an early one since. */
  #mayReprobe = false
  #firstOver = false
  /** Consecutive failed probes. */
  #failures = 0
  /** The endpoint takes requests: a probe succeeded, and not enough have failed since. */
  #inService = false
  #stopped = false

  /** Starts the first probe at once. */
  constructor(compiled: CompiledCluster, url: string, deps: ProberDeps) {
    super()
    this.#compiled = compiled
    this.url = url
    this.#deps = deps
    this.#early = true
    deps.gate.enter(this)
  }

  get cluster(): string {
    return this.#compiled.name
  }

  get stopped(): boolean {
    return this.#stopped
  }

  /** The cluster may have changed: don't wait for the next interval to use a fixed CA, credential or health check. */
  follow(compiled: CompiledCluster): void {
    if (this.#compiled === compiled) return
    this.#compiled = compiled
    if (this.#running) this.#changedDuringProbe = true
    else this.#soon()
  }

  awaited(): void {
    if (!this.#firstOver) this.#deps.gate.prefer(this)
  }

  /** A connection broke. If it was that of the running probe, the probe's outcome decides. */
  broke(): void {
    if (this.#running) this.#brokeDuringProbe = true
    else this.#reprobe()
  }

  /** Once the endpoint is out of service, a broken connection tells nothing new. */
  #reprobe(): void {
    if (!this.#mayReprobe && !this.#undecided) return
    this.#mayReprobe = false
    this.#soon()
  }

  /** Not called while a probe runs. Repeated calls do not postpone the probe. */
  #soon(): void {
    if (this.#early) return
    this.#early = true
    this.#schedule(REPROBE_DELAY_MS)
  }

  #schedule(delayMs: number): void {
    clearTimeout(this.#timer)
    if (this.#stopped) return
    this.#timer = setTimeout(() => {
      if (this.#early) this.#deps.gate.enter(this)
      else void this.run()
    }, delayMs)
    this.#timer.unref()
  }

  /** Early probes are started by the gate. */
  async run(): Promise<void> {
    if (this.#stopped) {
      this.#deps.gate.leave(this)
      return
    }
    this.#running = true
    this.#brokeDuringProbe = false
    this.#changedDuringProbe = false
    let healthy = false
    try {
      healthy = await this.#deps.probe(this)
    } finally {
      this.#deps.gate.leave(this)
      this.#running = false
      this.#settle(healthy)
    }
  }

  /** Probes fail, but too few for the threshold: the endpoint still takes requests. */
  get #undecided(): boolean {
    return this.#inService && this.#failures > 0
  }

  #settle(healthy: boolean): void {
    const first = !this.#firstOver
    this.#failures = healthy ? 0 : this.#failures + 1
    if (healthy) this.#inService = true
    else if (this.#failures >= this.#compiled.healthCheck.unhealthyThreshold) this.#inService = false
    // A connection broke and the probe failed, too: find out now whether the endpoint is dead, not some intervals later. A kube-apiserver
    // restarted by then would get requests before it is ready, and answer them with 403.
    const settleNow = this.#early && this.#undecided
    this.#mayReprobe = healthy && (first || !this.#early || this.#mayReprobe)
    this.#early = false
    this.#tellFirstOver()
    if (this.#changedDuringProbe || settleNow) this.#soon()
    else if (this.#brokeDuringProbe) this.#reprobe()
    if (this.#early) return
    const [from, to] = first ? [EARLIEST_SECOND, 1] : [1 - JITTER, 1 + JITTER]
    this.#schedule(this.#compiled.healthCheck.intervalMs * (from + (to - from) * this.#deps.random()))
  }

  #tellFirstOver(): void {
    if (this.#firstOver) return
    this.#firstOver = true
    this.#deps.firstOver()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#deps.gate.leave(this)
    this.#tellFirstOver()
  }
}
