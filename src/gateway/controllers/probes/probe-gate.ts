// Limits how many probes start at the same moment (at startup, or when a shared credential has changed): thousands of TLS
// handshakes at once would block all other work, and overload the servers.

import { type Queued, RoundRobinQueue } from '../../../kit/core/queues/round-robin-queue.ts'

export interface ProbeGate<T> {
  /** Whether some have not started for lack of capacity. */
  readonly isCrowded: boolean
  /** Calls `start` when there is capacity, never before `enter` returns. */
  enter(one: T): void
  /** Its probe is awaited: it takes turns with all that are not, instead of waiting behind them. No effect unless it waits. */
  prefer(one: T): void
  /** The probe has ended or will not happen. No effect if it didn't enter. */
  leave(one: T): void
}

/** Probes that may be in their starting phase concurrently. */
const MAX_STARTING = 64
/** A probe unanswered after this time only waits and costs nothing: the next one may start. */
const STARTING_MS = 100

/** Sources of the queue: clients can make thousands of probes awaited, and the others must not stand still for that. */
const AWAITED = 'awaited'
const OTHERS = 'others'

export function createProbeGate<T extends Queued>(start: (one: T) => void): ProbeGate<T> {
  const queue = new RoundRobinQueue<T>()
  const starting = new Map<T, NodeJS.Timeout>()
  let turn: NodeJS.Timeout | undefined

  const leave = (one: T): void => {
    queue.remove(one)
    const timer = starting.get(one)
    if (timer === undefined) return
    clearTimeout(timer)
    starting.delete(one)
    nextTurn()
  }

  const nextTurn = (): void => {
    if (turn !== undefined || queue.count === 0) return
    turn = setTimeout(() => {
      turn = undefined
      startSome()
    }, 0)
    turn.unref()
  }

  const startSome = (): void => {
    while (starting.size < MAX_STARTING) {
      const one = queue.next()
      if (one === undefined) return
      const timer = setTimeout(() => leave(one), STARTING_MS)
      timer.unref()
      starting.set(one, timer)
      start(one)
    }
  }

  return {
    get isCrowded() {
      return queue.count > 0
    },
    enter(one) {
      queue.add(one, OTHERS)
      nextTurn()
    },
    prefer(one) {
      if (queue.remove(one)) queue.add(one, AWAITED)
    },
    leave,
  }
}
