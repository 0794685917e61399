// Drains one thread: everything that can finish does.

import type { Gateway } from '../../../gateway/request/exchange/gateway.ts'
import type { RunningRequest } from '../../../gateway/state/running.ts'

/** Watches end within this fraction of the drain time, so that the last of them still has time to be resumed elsewhere. */
const WATCH_PART = 0.5
/** Watches end at this pace if that is faster: a reconnecting client costs its new server 2 ms of a core. */
const WATCH_PACE_MS = 5
/** client-go relists if a watch ended earlier than this without an event (VeryShortWatchError in tools/cache/reflector.go). */
const SHORT_WATCH_MS = 1_000
/** How often a drain checks whether the last connection has closed. */
const DRAIN_POLL_MS = 20

/** A place with connections: a port, or those in transit between threads. */
interface Drainable {
  /** Accepts no more, and asks connected clients to leave. */
  drain(): void
  connections(): number
}

/**
 * Sends GOAWAY to all clients and ends watches one by one; everything else may run as long as the caller waits. Resolves when nothing is running; the
 * caller bounds it by aborting what is left.
 */
export async function drainThread(
  places: readonly Drainable[],
  gateway: Pick<Gateway, 'running' | 'clock' | 'random'>,
  drainTimeoutMs: number,
): Promise<void> {
  const { running, clock, random } = gateway
  const endsAtMs = clock.monotonic() + drainTimeoutMs
  const ending = new Map<RunningRequest, NodeJS.Timeout>()
  // Until the connections have closed, not only until the requests are over: a response may still be on its way to a slow client, and a request may
  // not have reached forward() yet, waiting for the verdict on its token.
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
