// Connections to an endpoint that ended because of somebody's request: who is charged for it, and when it was rather the endpoint.

import type { Charge } from '../../../kit/api/stream.ts'
import type { Offenders } from '../../core/upstream/offenders.ts'
import type { UpstreamCounters } from '../../metrics/upstream-counters.ts'
import type { Relists } from './relists.ts'

/** What all endpoints of a cluster share, in each thread. */
export interface SharedByCluster {
  readonly cluster: string
  readonly relists: Relists
  readonly offenders: Offenders
  /** A source gets connections of its own for a while. */
  onQuarantined(charge: Charge, forMs: number): void
}

/** A connection that is closed silently may be the endpoint's end: it counts if another one can be opened by then. */
const ALIVE_MS = 2_000
/** ... and only half, since nobody says why. */
const UNCERTAIN_POINTS = 0.5
/** Connections that were open at the same time and are lost within this time are lost because of the endpoint. */
const TOGETHER_MS = 250

export class Offences {
  readonly #shared: SharedByCluster
  readonly #counters: UpstreamCounters
  /** Of the last connection that was closed silently, and when. */
  #uncertain: readonly Charge[] = []
  #lostMs = Number.NEGATIVE_INFINITY

  constructor(shared: SharedByCluster, counters: UpstreamCounters) {
    this.#shared = shared
    this.#counters = counters
  }

  /** Which connections a source uses; -1 = those of everybody. */
  laneOf(charge: Charge): number {
    const { offenders } = this.#shared
    return offenders.none ? -1 : offenders.laneOf(charge, performance.now())
  }

  /**
   * @param charges of a connection that ends: each as often as it is named
   * @param readyAtMs since when it could be used
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

  /** A connection was opened: the endpoint is there. */
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
