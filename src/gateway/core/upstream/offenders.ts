// Whose requests end connections to upstream: they get connections of their own for a while, so that they end nobody else's. What ended one
// is a guess (the server does not say), so it costs nothing but the sharing.

import type { Charge } from '../../../kit/api/stream.ts'
import { Penalties, type PenaltyScale } from '../../../kit/core/penalties/penalties.ts'

/** Sources with connections of their own, at the same time, in each thread and cluster; further ones share some. */
export const OWN_LANES = 8
/** For sources without a name, all together: they never take the places of others. */
const UNKNOWN_LANE = OWN_LANES + 1
/** After the first time; four times as long after each further one. */
export const FIRST_QUARANTINE_MS = 60_000
export const LONGEST_QUARANTINE_MS = 3_600_000
const QUARANTINE: PenaltyScale = { firstMs: FIRST_QUARANTINE_MS, growth: 4, longestMs: LONGEST_QUARANTINE_MS }
/** A suspicion is forgotten after this long without another one, beyond the time with own connections. */
const FORGOTTEN_MS = 600_000
/** Sources that are remembered. */
export const MAX_SUSPECTS = 1024

export class Offenders {
  /** By source, of those with connections of their own. */
  readonly #lanes = new Map<string, number>()
  readonly #penalties = new Penalties(FORGOTTEN_MS, MAX_SUSPECTS, (source) => this.#lanes.delete(source))

  /** Whether everybody shares connections, so that nobody has to be looked up. */
  get none(): boolean {
    return this.#lanes.size === 0
  }

  /** How many have connections of their own. */
  get quarantined(): number {
    return this.#lanes.size
  }

  /**
   * A connection has ended, and a source has caused so much of it (1 = it alone).
   * @returns for how long it gets connections of its own from now on, milliseconds; 0 = as before
   */
  charge(charge: Charge, points: number, nowMs: number): number {
    const { source } = charge
    this.#release(nowMs)
    const forMs = this.#penalties.charge(source, points, QUARANTINE, nowMs)
    if (forMs > 0 && !this.#lanes.has(source)) this.#lanes.set(source, this.#freeLane(charge))
    return forMs
  }

  /** Which connections a source uses: 0 to OWN_LANES + 1, or -1 for those of everybody. */
  laneOf({ source }: Charge, nowMs: number): number {
    const lane = this.#lanes.get(source)
    if (lane === undefined) return -1
    if (this.#penalties.leftMs(source, nowMs) > 0) return lane
    this.#lanes.delete(source)
    return -1
  }

  /** The lanes of those whose time is over: they may never come again. */
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
