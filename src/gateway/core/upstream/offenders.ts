// Quarantines sources whose requests end upstream connections: they get their own connections for a while, so that they break no one
// else's. The cause is a guess (the server does not say), so all that a suspect loses is the sharing.

import type { Charge } from '../../../kit/api/stream.ts'
import { Penalties, type PenaltyScale } from '../../../kit/core/penalties/penalties.ts'

/** Quarantined sources with their own connections, per thread and cluster; further ones share some. */
export const OWN_LANES = 8
/** For all sources without a name: they never take a lane from others. */
const UNKNOWN_LANE = OWN_LANES + 1
/** After the first offense; four times as long after each further one. */
export const FIRST_QUARANTINE_MS = 60_000
export const LONGEST_QUARANTINE_MS = 3_600_000
const QUARANTINE: PenaltyScale = { firstMs: FIRST_QUARANTINE_MS, growth: 4, longestMs: LONGEST_QUARANTINE_MS }
/** A suspicion expires this long after the quarantine without another one. */
const FORGOTTEN_MS = 600_000
/** Maximum number of remembered sources. */
export const MAX_SUSPECTS = 1024

export class Offenders {
  /** Lanes of the quarantined sources. */
  readonly #lanes = new Map<string, number>()
  readonly #penalties = new Penalties(FORGOTTEN_MS, MAX_SUSPECTS, (source) => this.#lanes.delete(source))

  /** Fast path: no source is quarantined, so no lookup is needed. */
  get none(): boolean {
    return this.#lanes.size === 0
  }

  /** Number of quarantined sources. */
  get quarantined(): number {
    return this.#lanes.size
  }

  /**
   * A connection has ended, and this source caused this part of it (1 = it alone).
   * @returns milliseconds of quarantine from now on; 0 = unchanged
   */
  charge(charge: Charge, points: number, nowMs: number): number {
    const { source } = charge
    this.#release(nowMs)
    const forMs = this.#penalties.charge(source, points, QUARANTINE, nowMs)
    if (forMs > 0 && !this.#lanes.has(source)) this.#lanes.set(source, this.#freeLane(charge))
    return forMs
  }

  /** Which connections a source uses: 0 to OWN_LANES + 1, or -1 for the shared ones. */
  laneOf({ source }: Charge, nowMs: number): number {
    const lane = this.#lanes.get(source)
    if (lane === undefined) return -1
    if (this.#penalties.leftMs(source, nowMs) > 0) return lane
    this.#lanes.delete(source)
    return -1
  }

  /** Frees the lanes of sources whose quarantine is over: they may never come back. */
  #release(nowMs: number): void {
    for (const source of this.#lanes.keys()) if (this.#penalties.leftMs(source, nowMs) === 0) this.#lanes.delete(source)
  }

  #freeLane({ known }: Charge): number {
    if (!known) return UNKNOWN_LANE
    const taken = new Set(this.#lanes.values())
    let lane = 0
    while (lane < OWN_LANES && taken.has(lane)) lane++
    return lane
  }
}
