// The stream of a request that was not sent, with the reason.

import type { ResetReason, Stream, StreamEvents } from '../../../kit/api/stream.ts'

export class UnsentStream implements Stream {
  readonly queued: number = 0
  #over = false

  /** `events.onReset` follows after `open()` has returned this stream. */
  constructor(events: StreamEvents, reason: ResetReason) {
    queueMicrotask(() => {
      if (this.#over) return
      this.#over = true
      events.onReset(reason)
    })
  }

  headers(): void {
    // Nothing is sent.
  }

  body(): void {
    // Nothing is sent.
  }

  trailers(): void {
    // Nothing is sent.
  }

  credit(): void {
    // Nothing is received.
  }

  reset(): void {
    this.#over = true
  }
}
