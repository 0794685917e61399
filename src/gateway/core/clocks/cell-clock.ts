// Bounds of what the clocks of a cell's API servers show now, without trusting any clock: each response carries their `Date`, and arrived
// between two moments of our own monotonic clock. Wall clocks are never compared.

/** Bounds of what the API servers' clocks show at one moment, milliseconds since the epoch. */
export interface CellTime {
  readonly earliestMs: number
  readonly latestMs: number
}

/** How far the clocks of a cell's API servers are ahead of ours, milliseconds; negative = behind. */
export interface ClockSkew {
  readonly leastMs: number
  readonly mostMs: number
}

/** The bounds from the responses of one minute. */
interface Measured {
  /** Server's clock minus our monotonic one. */
  readonly leastMs: number
  readonly mostMs: number
  /** Monotonic time of the last response. */
  readonly atMs: number
  /** Only slow responses arrived. */
  readonly slow: boolean
}

/** An HTTP-date has whole seconds (RFC 9110, 5.6.7), truncated. */
const DATE_STEP_MS = 1_000
const MINUTE_MS = 60_000
/**
 * Several servers may share one address, and clocks get adjusted: everything measured within this time is possible, both for timestamps of
 * that time and for the clock now.
 */
const KEPT_MINUTES = 10
/** A slower response says little; it is used only as long as there is no better one. */
const SLOW_MS = 3_000
/** A smaller skew is not reported: it may be network latency. */
export const TOLD_SKEW_MS = 1_000

const NO_SERVERS: ReadonlySet<string> = new Set()

export class CellClocks {
  /** By cell, then by server. */
  readonly #cells = new Map<string, Map<string, readonly Measured[]>>()
  /** The bounds are widened by this much. */
  readonly marginMs: number

  /** @param marginMs widens the bounds, to allow for drift and adjustments */
  constructor(marginMs: number) {
    this.marginMs = marginMs
  }

  /**
   * Records a response from one API server of the cell.
   * @param date its `Date` header; an unreadable one is ignored
   * @param sentMs when the request was sent; monotonic, as receivedMs, when the response head arrived
   */
  observe(cell: string, server: string, date: string | undefined, sentMs: number, receivedMs: number): void {
    const dateMs = date === undefined ? Number.NaN : Date.parse(date)
    if (Number.isNaN(dateMs)) return
    const servers = this.#cells.get(cell) ?? new Map<string, readonly Measured[]>()
    this.#cells.set(cell, servers)
    const [leastMs, mostMs] = [dateMs - receivedMs, dateMs + DATE_STEP_MS - sentMs]
    const said = { leastMs, mostMs, atMs: receivedMs, slow: receivedMs - sentMs > SLOW_MS }
    const kept = (servers.get(server) ?? []).filter(({ atMs }) => receivedMs - atMs < KEPT_MINUTES * MINUTE_MS)
    const good = kept.filter(({ slow }) => !slow)
    if (!said.slow) servers.set(server, added(good, said))
    else servers.set(server, good.length > 0 ? good : added(kept, said))
  }

  /** Forgets all other cells, and all other servers of these. */
  keepOnly(servers: ReadonlyMap<string, ReadonlySet<string>>): void {
    for (const cell of this.#cells.keys()) this.keepServers(cell, servers.get(cell) ?? NO_SERVERS)
  }

  /** Forgets all other servers of the cell. */
  keepServers(cell: string, kept: ReadonlySet<string>): void {
    const known = this.#cells.get(cell)
    for (const server of known?.keys() ?? []) if (!kept.has(server)) known?.delete(server)
    if (known?.size === 0) this.#cells.delete(cell)
  }

  /** The bounds now; undefined = not measured. @param monotonicMs now */
  at(cell: string, monotonicMs: number): CellTime | undefined {
    const bounds = this.#boundsOf(cell, monotonicMs)
    if (bounds === undefined) return undefined
    const { leastMs, mostMs } = bounds
    return { earliestMs: monotonicMs + leastMs - this.marginMs, latestMs: monotonicMs + mostMs + this.marginMs }
  }

  /** The last measurement, without the margin; undefined = unknown. @param nowMs wall clock */
  skew(cell: string, nowMs: number, monotonicMs: number): ClockSkew | undefined {
    const bounds = this.#boundsOf(cell, monotonicMs, 1)
    if (bounds === undefined) return undefined
    return { leastMs: bounds.leastMs + monotonicMs - nowMs, mostMs: bounds.mostMs + monotonicMs - nowMs }
  }

  /** @param minutes how many of the last minutes with responses count, per server */
  #boundsOf(cell: string, monotonicMs: number, minutes = KEPT_MINUTES + 1): ClockSkew | undefined {
    let leastMs = Number.POSITIVE_INFINITY
    let mostMs = Number.NEGATIVE_INFINITY
    for (const measured of this.#cells.get(cell)?.values() ?? []) {
      for (const minute of measured.slice(-minutes)) {
        if (monotonicMs - minute.atMs >= KEPT_MINUTES * MINUTE_MS) continue
        leastMs = Math.min(leastMs, minute.leastMs)
        mostMs = Math.max(mostMs, minute.mostMs)
      }
    }
    return leastMs <= mostMs ? { leastMs, mostMs } : undefined
  }
}

function added(minutes: readonly Measured[], said: Measured): readonly Measured[] {
  const last = minutes.at(-1)
  if (last === undefined || Math.floor(last.atMs / MINUTE_MS) !== Math.floor(said.atMs / MINUTE_MS)) {
    return [...minutes, said].slice(-KEPT_MINUTES - 1)
  }
  const leastMs = Math.min(last.leastMs, said.leastMs)
  const mostMs = Math.max(last.mostMs, said.mostMs)
  return [...minutes.slice(0, -1), { ...said, leastMs, mostMs }]
}

/** The skew shown to people: the middle of the bounds, or 0 if none is proven. */
export function certainSkewMs(skew: ClockSkew | undefined): number {
  if (skew === undefined) return 0
  const { leastMs, mostMs } = skew
  const certain = leastMs > 0 ? leastMs : mostMs < 0 ? mostMs : 0
  return Math.abs(certain) < TOLD_SKEW_MS ? 0 : Math.round((leastMs + mostMs) / 2)
}

/** For people. */
export function skewText(skewMs: number): string {
  const seconds = Math.round(Math.abs(skewMs) / 1_000)
  return `its clock is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} the gateway's`
}
