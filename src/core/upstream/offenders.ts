// Whose requests end connections to upstream: they get connections of their own for a while, so that they end nobody else's. What ended one
// is a guess (the server does not say), so it costs nothing but the sharing.

import type { Charge } from '../../api/ports/stream.ts'

/** Sources with connections of their own, at the same time, in each thread and cluster; further ones share some. */
export const OWN_LANES = 8
/** For sources without a name, all together: they never take the places of others. */
const UNKNOWN_LANE = OWN_LANES + 1
/** After the first time; four times as long after each further one. */
export const FIRST_QUARANTINE_MS = 60_000
export const LONGEST_QUARANTINE_MS = 3_600_000
/** A suspicion is forgotten after this long without another one, beyond the time with own connections. */
const FORGOTTEN_MS = 600_000
/** Sources that are remembered. */
export const MAX_SUSPECTS = 1024
const GROWTH = 4

interface Suspect {
  readonly charge: Charge
  /** How much of the end of a connection it has caused, probably; 1 = one. */
  points: number
  times: number
  untilMs: number
  /** -1 = none. */
  lane: number
  lastMs: number
}

export class Offenders {
  /** The one that was charged least recently comes first. */
  readonly #suspects = new Map<string, Suspect>()
  readonly #lanes: (Suspect | undefined)[] = new Array<undefined>(OWN_LANES).fill(undefined)
  #quarantined = 0

  /** Whether everybody shares connections, so that nobody has to be looked up. */
  get none(): boolean {
    return this.#quarantined === 0
  }

  /** How many have connections of their own. */
  get quarantined(): number {
    return this.#quarantined
  }

  /**
   * A connection has ended, and a source has caused so much of it (1 = it alone).
   * @returns for how long it gets connections of its own from now on, milliseconds; 0 = as before
   */
  charge(charge: Charge, points: number, nowMs: number): number {
    const suspect = this.#suspectOf(charge, nowMs)
    suspect.lastMs = nowMs
    suspect.points += points
    if (suspect.points < 1) return 0
    suspect.points = 0
    const forMs = Math.min(LONGEST_QUARANTINE_MS, FIRST_QUARANTINE_MS * GROWTH ** suspect.times)
    suspect.times++
    suspect.untilMs = nowMs + forMs
    if (suspect.lane < 0) {
      suspect.lane = this.#freeLane(suspect)
      this.#quarantined++
    }
    return forMs
  }

  /** Which connections a source uses: 0 to OWN_LANES + 1, or -1 for those of everybody. */
  laneOf(charge: Charge, nowMs: number): number {
    const suspect = this.#suspects.get(charge.source)
    if (suspect === undefined || suspect.lane < 0) return -1
    if (nowMs < suspect.untilMs) return suspect.lane
    this.#release(suspect)
    return -1
  }

  /** Forgets what is old. Call it now and then. */
  tick(nowMs: number): void {
    for (const [source, suspect] of this.#suspects) {
      if (suspect.lane >= 0 && nowMs >= suspect.untilMs) this.#release(suspect)
      if (suspect.lane < 0 && nowMs - Math.max(suspect.lastMs, suspect.untilMs) >= FORGOTTEN_MS)
        this.#suspects.delete(source)
    }
  }

  #suspectOf(charge: Charge, nowMs: number): Suspect {
    const { source } = charge
    const known = this.#suspects.get(source)
    const suspect = known ?? { charge, points: 0, times: 0, untilMs: 0, lane: -1, lastMs: nowMs }
    this.#suspects.delete(source)
    this.#suspects.set(source, suspect)
    if (this.#suspects.size > MAX_SUSPECTS) this.#forgetOldest()
    return suspect
  }

  #forgetOldest(): void {
    for (const [source, suspect] of this.#suspects) {
      if (suspect.lane >= 0) this.#release(suspect)
      this.#suspects.delete(source)
      return
    }
  }

  #freeLane(suspect: Suspect): number {
    if (!suspect.charge.known) return UNKNOWN_LANE
    const free = this.#lanes.indexOf(undefined)
    if (free < 0) return OWN_LANES
    this.#lanes[free] = suspect
    return free
  }

  #release(suspect: Suspect): void {
    if (this.#lanes[suspect.lane] === suspect) this.#lanes[suspect.lane] = undefined
    suspect.lane = -1
    this.#quarantined--
  }
}
