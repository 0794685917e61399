// Runs the health checks of one endpoint, one at a time: at the cluster's interval, and early after a change. A dead
// endpoint costs one probe per interval: its own failure doesn't trigger another probe.

import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import type { ProbeGate } from './probe-gate.ts'

/** Shared by all probers. */
export interface ProberDeps {
  /** Probes the endpoint and reports the outcome, unless it is no longer listed. Resolves with whether it was healthy. */
  probe(prober: EndpointProber): Promise<boolean>
  /** Called once, when the first probe has ended or will not happen. */
  firstOver(): void
  /** In [0, 1). */
  random(): number
  /** Limits early probes, of which there can be thousands at once. */
  readonly gate: ProbeGate<EndpointProber>
}

/** Each interval varies by this fraction, so that many gateways don't probe at the same moment. */
const JITTER = 0.1
/** First probes start at once. Second ones are spread from this fraction of the interval to the whole. */
const EARLIEST_SECOND = 0.5
/** A probe follows a broken connection after this delay, so that many broken connections cause one probe. */
const REPROBE_DELAY_MS = 100

export class EndpointProber {
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
