// Limits how many probes start at the same moment (at startup, or when a shared credential has changed): thousands of TLS
// handshakes at once would block all other work, and overload the servers.

export interface ProbeGate<T> {
  /** Calls `start` when there is capacity, never before `enter` returns. */
  enter(one: T): void
  /** The probe has ended or will not happen. No effect if it didn't enter. */
  leave(one: T): void
}

/** Probes that may be in their starting phase concurrently. */
const MAX_STARTING = 64
/** A probe unanswered after this time only waits and costs nothing: the next one may start. */
const STARTING_MS = 100

export function createProbeGate<T extends object>(start: (one: T) => void): ProbeGate<T> {
  // A Set keeps insertion order.
  const queue = new Set<T>()
  const starting = new Map<T, NodeJS.Timeout>()
  let turn: NodeJS.Timeout | undefined

  const leave = (one: T): void => {
    queue.delete(one)
    const timer = starting.get(one)
    if (timer === undefined) return
    clearTimeout(timer)
    starting.delete(one)
    nextTurn()
  }

  const nextTurn = (): void => {
    if (turn !== undefined || queue.size === 0) return
    turn = setTimeout(() => {
      turn = undefined
      startSome()
    }, 0)
    turn.unref()
  }

  const startSome = (): void => {
    for (const one of queue) {
      if (starting.size >= MAX_STARTING) return
      queue.delete(one)
      const timer = setTimeout(() => leave(one), STARTING_MS)
      timer.unref()
      starting.set(one, timer)
      start(one)
    }
  }

  return {
    enter(one) {
      queue.add(one)
      nextTurn()
    },
    leave,
  }
}
