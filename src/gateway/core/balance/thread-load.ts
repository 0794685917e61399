// Load balancing between gateway threads: where a new connection goes, and which connections are asked to reconnect.

/** Load of one thread. */
export interface ThreadLoad {
  /** Connections it has or is about to get. */
  readonly connections: number
  /** Recent requests per second started on its HTTP/2 connections. */
  readonly requestRate: number
}

/** A thread above this multiple of the mean is overloaded. */
const FAR_ABOVE = 1.5
/** Smaller differences are not worth a reconnect: requests per second. */
const SMALL_RATE = 200
/** Same, in connections. */
const SMALL_COUNT = 8
/** An overloaded thread gets fewer connections: one in this many less. */
const RELIEF = 4
/** A connection may carry this multiple of the surplus: two equally busy ones differ from it by chance, in either direction. */
const SLACK = 1.1
/** Maximum asked at once: one in this many, and at least one. Their clients all reconnect at the same time. */
const AT_ONCE = 20

/**
 * The thread with the fewest connections; among equals `own`, then the one with the fewest requests. An overloaded thread counts as if it
 * had a quarter more connections.
 * @param loads by thread; undefined = accepts none. At least `own` is present.
 */
export function placeConnection(loads: readonly (ThreadLoad | undefined)[], own: number): number {
  const hotAbove = farAbove(meanOf(loads, rateOf), SMALL_RATE)
  let best = own
  let least = Number.POSITIVE_INFINITY
  let leastRate = 0
  for (const [thread, load] of loads.entries()) {
    if (load === undefined) continue
    const { connections, requestRate } = load
    const weighed = requestRate > hotAbove ? connections + 1 + connections / RELIEF : connections
    const better = weighed < least || (weighed === least && best !== own && (thread === own || requestRate < leastRate))
    if (!better) continue
    best = thread
    least = weighed
    leastRate = requestRate
  }
  return best
}

/** A connection of the deciding thread. */
export interface ConnectionLoad {
  /** Recent requests per second started on it. */
  readonly requestRate: number
}

/**
 * The connections to ask to reconnect, so that they move to another thread: none unless the thread is overloaded. A connection that
 * carries more than the surplus stays: moving it would only move the surplus.
 * @param own the deciding thread
 * @param held its connections that may be asked; each at most once
 * @param random in [0, 1)
 */
export function connectionsToMove<C extends ConnectionLoad>(
  loads: readonly (ThreadLoad | undefined)[],
  own: number,
  held: readonly C[],
  random: () => number,
): readonly C[] {
  const load = loads[own]
  if (load === undefined || held.length < 2) return []
  const [meanRate, meanCount] = [meanOf(loads, rateOf), meanOf(loads, countOf)]
  const atMost = Math.max(1, Math.floor(held.length / AT_ONCE))
  if (load.requestRate > farAbove(meanRate, SMALL_RATE)) {
    return chooseByRate(held, load.requestRate - meanRate, atMost)
  }
  if (load.connections > farAbove(meanCount, SMALL_COUNT)) {
    const first = Math.floor(random() * held.length)
    return Array.from({ length: Math.min(atMost, held.length) }, (_, i) => held[(first + i) % held.length]).filter(
      (one) => one !== undefined,
    )
  }
  return []
}

/** The busiest connections that together carry at most the surplus. */
function chooseByRate<C extends ConnectionLoad>(held: readonly C[], surplus: number, atMost: number): readonly C[] {
  const chosen: C[] = []
  let left = surplus
  for (const one of [...held].sort((a, b) => b.requestRate - a.requestRate)) {
    if (chosen.length === atMost || one.requestRate === 0) break
    if (one.requestRate > left * SLACK) continue
    chosen.push(one)
    left -= one.requestRate
  }
  return chosen
}

const rateOf = ({ requestRate }: ThreadLoad): number => requestRate
const countOf = ({ connections }: ThreadLoad): number => connections

function farAbove(mean: number, small: number): number {
  return Math.max(mean * FAR_ABOVE, mean + small)
}

function meanOf(loads: readonly (ThreadLoad | undefined)[], of: (load: ThreadLoad) => number): number {
  let sum = 0
  let threads = 0
  for (const load of loads) {
    if (load === undefined) continue
    sum += of(load)
    threads++
  }
  return threads === 0 ? 0 : sum / threads
}
