// Attributes broken connections to an endpoint: to the source whose request probably caused it, or to the endpoint.

import type { Charge } from '../../../kit/api/stream.ts'
import type { Offenders } from '../../core/upstream/offenders.ts'
import type { UpstreamCounters } from '../../metrics/upstream-counters.ts'
import type { Relists } from './relists.ts'

/** Shared by all endpoints of a cluster, in each thread. */
export interface SharedByCluster {
  readonly cluster: string
  readonly relists: Relists
  readonly offenders: Offenders
  /** After how long an HTTP/2 connection without requests is closed. */
  idleCloseMs(): number
  /** A source gets its own connections for a while. */
  onQuarantined(charge: Charge, forMs: number): void
}

/** A silently closed connection may mean that the endpoint is down: it counts if another one can be opened by then. */
const ALIVE_MS = 2_000
/** ... and only half, since the cause is unknown. */
const UNCERTAIN_POINTS = 0.5
/** Concurrently open connections that are lost within this time are attributed to the endpoint. */
const TOGETHER_MS = 250

export class Offences {
  readonly #shared: SharedByCluster
  readonly #counters: UpstreamCounters
  /** Suspects of the last silently closed connection, and when it closed. */
  #uncertain: readonly Charge[] = []
  #lostMs = Number.NEGATIVE_INFINITY

  constructor(shared: SharedByCluster, counters: UpstreamCounters) {
    this.#shared = shared
    this.#counters = counters
  }

  /** Which connections a source uses; -1 = the shared ones. */
  laneOf(charge: Charge): number {
    const { offenders } = this.#shared
    return offenders.none ? -1 : offenders.laneOf(charge, performance.now())
  }

  /**
   * @param charges of the connection's streams: each charged once per occurrence
   * @param readyAtMs since when it was usable
   */
  onSuspects(charges: readonly Charge[], certain: boolean, readyAtMs: number, nowMs: number): void {
    if (certain) {
      this.#charge(charges, 1, nowMs)
      return
    }
    const together = nowMs - this.#lostMs < TOGETHER_MS && readyAtMs <= this.#lostMs
    this.#lostMs = nowMs
    this.#uncertain = together ? [] : charges
  }

  /** A connection was opened: the endpoint is alive. */
  onReady(nowMs: number): void {
    const charges = this.#uncertain
    this.#uncertain = []
    if (nowMs - this.#lostMs < ALIVE_MS) this.#charge(charges, UNCERTAIN_POINTS, nowMs)
  }

  #charge(charges: readonly Charge[], points: number, nowMs: number): void {
    if (charges.length === 0) return
    this.#counters.endedByRequests++
    for (const charge of charges) {
      const forMs = this.#shared.offenders.charge(charge, points / charges.length, nowMs)
      if (forMs > 0) this.#shared.onQuarantined(charge, forMs)
    }
  }
}
