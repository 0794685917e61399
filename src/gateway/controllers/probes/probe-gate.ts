// Limits how many probes start at the same moment (at startup, or when a shared credential has changed): thousands of TLS
// handshakes at once would block all other work, and overload the servers.

export interface ProbeGate<T> {
  /** Whether some have not started for lack of capacity. */
  readonly isCrowded: boolean
  /** Calls `start` when there is capacity, never before `enter` returns. */
  enter(one: T): void
  /** Its probe is awaited: it goes before those that are not, in turns with them. No effect unless it waits. */
  prefer(one: T): void
  /** The probe has ended or will not happen. No effect if it didn't enter. */
  leave(one: T): void
}

/** Probes that may be in their starting phase concurrently. */
const MAX_STARTING = 64
/** A probe unanswered after this time only waits and costs nothing: the next one may start. */
const STARTING_MS = 100

export function createProbeGate<T extends object>(start: (one: T) => void): ProbeGate<T> {
  // A Set keeps insertion order.
  const awaited = new Set<T>()
  const others = new Set<T>()
  const starting = new Map<T, NodeJS.Timeout>()
  let turn: NodeJS.Timeout | undefined

  const leave = (one: T): void => {
    if (!awaited.delete(one)) others.delete(one)
    const timer = starting.get(one)
    if (timer === undefined) return
    clearTimeout(timer)
    starting.delete(one)
    nextTurn()
  }

  const isCrowded = (): boolean => awaited.size + others.size > 0

  const nextTurn = (): void => {
    if (turn !== undefined || !isCrowded()) return
    turn = setTimeout(() => {
      turn = undefined
      startSome()
    }, 0)
    turn.unref()
  }

  const startSome = (): void => {
    // In turns: clients can make thousands of probes awaited, and the others must not stand still for that.
    for (const one of alternating(awaited, others)) {
      if (starting.size >= MAX_STARTING) return
      if (!awaited.delete(one)) others.delete(one)
      const timer = setTimeout(() => leave(one), STARTING_MS)
      timer.unref()
      starting.set(one, timer)
      start(one)
    }
  }

  return {
    get isCrowded() {
      return isCrowded()
    },
    enter(one) {
      if (!awaited.has(one)) others.add(one)
      nextTurn()
    },
    prefer(one) {
      if (others.delete(one)) awaited.add(one)
    },
    leave,
  }
}

/** One of each in turn. */
function* alternating<T>(first: Iterable<T>, second: Iterable<T>): Iterable<T> {
  const [a, b] = [first[Symbol.iterator](), second[Symbol.iterator]()]
  for (let [one, other] = [a.next(), b.next()]; one.done !== true || other.done !== true; ) {
    if (one.done !== true) yield one.value
    if (other.done !== true) yield other.value
    one = a.next()
    other = b.next()
  }
}
