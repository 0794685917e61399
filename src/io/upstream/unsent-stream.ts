// The stream of a request that was not sent: nothing is known of it but why.

import type { ResetReason, Stream, StreamEvents } from '../../api/ports/stream.ts'

export class UnsentStream implements Stream {
  readonly queued: number = 0
  #over = false

  /** `events.onReset` follows, not before the caller of `open()` has this stream. */
  constructor(events: StreamEvents, reason: ResetReason) {
    queueMicrotask(() => {
      if (this.#over) return
      this.#over = true
      events.onReset(reason)
    })
  }

  headers(): void {
    // Nothing of it is sent.
  }

  body(): void {
    // Nothing of it is sent.
  }

  trailers(): void {
    // Nothing of it is sent.
  }

  credit(): void {
    // Nothing comes.
  }

  reset(): void {
    this.#over = true
  }
}
