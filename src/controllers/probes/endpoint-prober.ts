// The health checks of one endpoint, one after the other: at the interval of its cluster, and out of turn when something has
// changed. An endpoint that is dead costs one probe in an interval: its own failure is no reason to ask it again.

import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import type { ProbeGate } from './probe-gate.ts'

/** What all probers share. */
export interface ProberDeps {
  /** Probes the endpoint and reports the outcome; whether it was healthy. Nothing when it is not listed any more. */
  probe(prober: EndpointProber): Promise<boolean>
  /** Once, when the first probe is over or will not be. */
  firstOver(): void
  /** In [0, 1). */
  random(): number
  /** For probes out of turn, which can be thousands at once. */
  readonly gate: ProbeGate<EndpointProber>
}

/** Probes of many gateways must not come together: each interval is varied by this much either way. */
const JITTER = 0.1
/** First probes come as fast as they can. The second ones are spread from this part of the interval to all of it. */
const EARLIEST_SECOND = 0.5
/** A broken connection is followed by a probe, but a storm of them by no storm. */
const REPROBE_DELAY_MS = 100

export class EndpointProber {
  readonly url: string
  readonly #deps: ProberDeps
  #compiled: CompiledCluster
  #timer: NodeJS.Timeout | undefined
  #running = false
  /** The next probe, or the one that runs, comes out of turn. */
  #early = false
  /** While a probe runs, which may have seen the state of before. */
  #brokeDuringProbe = false
  #changedDuringProbe = false
  /** The last probe in turn succeeded, and no broken connection has led to another one since. */
  #mayReprobe = false
  #firstOver = false
  /** Probes that failed one after the other. */
  #failures = 0
  #stopped = false

  /** The first probe comes at once. */
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

  /** The cluster may have changed: a repaired CA, credential or check must not wait for the next interval. */
  follow(compiled: CompiledCluster): void {
    if (this.#compiled === compiled) return
    this.#compiled = compiled
    if (this.#running) this.#changedDuringProbe = true
    else this.#soon()
  }

  /** A connection broke. That of the probe that runs, perhaps: its outcome says whether this is news. */
  broke(): void {
    if (this.#running) this.#brokeDuringProbe = true
    else this.#reprobe()
  }

  /** A probe that fails has said all that a broken connection can say. */
  #reprobe(): void {
    if (!this.#mayReprobe) return
    this.#mayReprobe = false
    this.#soon()
  }

  /** Not while it runs. A storm must not put the probe off again and again. */
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

  /** By the gate, when it comes out of turn. */
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

  #settle(healthy: boolean): void {
    const first = !this.#firstOver
    this.#failures = healthy ? 0 : this.#failures + 1
    // A connection broke and the probe failed, too: whether the endpoint is dead is settled now, not in some intervals.
    const undecided =
      this.#early && !first && !healthy && this.#failures < this.#compiled.healthCheck.unhealthyThreshold
    this.#mayReprobe = healthy && (first || !this.#early || this.#mayReprobe)
    this.#early = false
    this.#tellFirstOver()
    if (this.#changedDuringProbe || undecided) this.#soon()
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
