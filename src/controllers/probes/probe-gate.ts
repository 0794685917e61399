// Probes that many endpoints want at the same moment (at the start, or when a credential of all of them has changed) go out
// some at a time: thousands of handshakes at once would hold up everything else, and overrun who answers them.

export interface ProbeGate<T> {
  /** `start` is called for it when there is room: never before this returns. */
  enter(one: T): void
  /** It is over, or will not be. Without effect for one that did not enter. */
  leave(one: T): void
}

/** Under way at most. */
const MAX_STARTING = 64
/** What has not been answered after this long only waits, and costs nothing: the next one may go. */
const STARTING_MS = 100

export function createProbeGate<T extends object>(start: (one: T) => void): ProbeGate<T> {
  // A Set keeps the order in which they came.
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
