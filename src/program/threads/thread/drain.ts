// The drain of one thread: whatever can finish does.

import type { Gateway } from '../../../gateway/request/exchange/gateway.ts'
import type { RunningRequest } from '../../../gateway/state/running.ts'

/** Watches end in half of the drain time at most, so that the last of them still has time to be followed elsewhere. */
const WATCH_PART = 0.5
/** Watches end at this pace where that takes less: a client that comes back costs whoever serves it 2 ms of a core. */
const WATCH_PACE_MS = 5
/** client-go lists again when a watch has ended earlier than this without an event (VeryShortWatchError of tools/cache/reflector.go). */
const SHORT_WATCH_MS = 1_000
/** How often a drain looks whether the last connection has closed. */
const DRAIN_POLL_MS = 20

/** Where connections are: a port, or what is on its way between threads. */
export interface Drainable {
  /** Takes no more, and asks the clients of those that there are to go. */
  drain(): void
  connections(): number
}

/**
 * GOAWAY to all clients, watches end one after the other, everything else may run as long as the caller waits. Resolves when nothing runs;
 * the caller bounds it by aborting what is left.
 */
export async function drainThread(
  places: readonly Drainable[],
  gateway: Pick<Gateway, 'running' | 'clock' | 'random'>,
  drainTimeoutMs: number,
): Promise<void> {
  const { running, clock, random } = gateway
  const endsAtMs = clock.monotonic() + drainTimeoutMs
  const ending = new Map<RunningRequest, NodeJS.Timeout>()
  // Until the connections have closed, not only until the requests are over: an answer may still be on its way to a
  // slow client, and a request may still stand before forward(), waiting for the verdict about its token.
  do {
    for (const place of places) place.drain() // again: connections that have become idle since
    const watches = running.longRunning((request) => request.isWatch && !ending.has(request))
    const nowMs = clock.monotonic()
    const mostMs = Math.max(0, endsAtMs - nowMs) * WATCH_PART
    for (const watch of watches) {
      const leastMs = Math.max(0, Math.min(SHORT_WATCH_MS - (nowMs - watch.monotonicMs), mostMs / 2))
      const spreadMs = Math.min(mostMs - leastMs, watches.length * WATCH_PACE_MS)
      ending.set(
        watch,
        setTimeout(() => watch.finish(), leastMs + random() * spreadMs),
      )
    }
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS))
  } while (running.size > 0 || places.some((place) => place.connections() > 0))
  for (const timer of ending.values()) clearTimeout(timer)
}
