// The drain of one thread: whatever can finish does.

import type { Gateway } from '../../../gateway/exchange/gateway.ts'
import type { RunningRequest } from '../../../state/running.ts'

/** Part of the drain time in which watches end, so that the last of them still has time to be followed elsewhere. */
const WATCH_SPREAD = 0.8
/** How often a drain looks whether the last connection has closed. */
const DRAIN_POLL_MS = 20

/** Where connections are: a port, or what is on its way between threads. */
export interface Drainable {
  /** Takes no more, and asks the clients of those that there are to go. */
  drain(): void
  connections(): number
}

/**
 * GOAWAY to all clients, running requests finish, watches end spread over the drain time. Resolves when nothing runs; the
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
  // Until the connections have closed, not only until the requests are over: an answer may still be on its way to a
  // slow client, and a request may still stand before forward(), waiting for the verdict about its token.
  do {
    for (const place of places) place.drain() // again: connections that have become idle since
    for (const request of running.longRunning()) {
      if (ending.has(request)) continue
      const spreadMs = Math.max(0, endsAtMs - clock.monotonic()) * WATCH_SPREAD
      ending.set(
        request,
        setTimeout(() => request.finish(), random() * spreadMs),
      )
    }
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS))
  } while (running.size > 0 || places.some((place) => place.connections() > 0))
  for (const timer of ending.values()) clearTimeout(timer)
}
