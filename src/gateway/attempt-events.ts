// A request may be sent more than once: each event of an upstream stream says which attempt it belongs to, so that what an
// attempt given up still says is not heard.

import type { HeaderList, ResetReason, StreamEvents } from '../api/stream.ts'

/** StreamEvents with the number of the attempt, counted from 1. */
export interface AttemptSink {
  onHeaders(attempt: number, list: HeaderList, end: boolean): void
  onBody(attempt: number, chunk: Buffer, end: boolean): void
  onTrailers(attempt: number, list: HeaderList): void
  onDrained(attempt: number): void
  onReset(attempt: number, reason: ResetReason): void
}

/** Binds the events of one attempt to the exchange that made it. */
export class AttemptEvents implements StreamEvents {
  readonly #sink: AttemptSink
  readonly #attempt: number

  constructor(sink: AttemptSink, attempt: number) {
    this.#sink = sink
    this.#attempt = attempt
  }

  onHeaders(list: HeaderList, end: boolean): void {
    this.#sink.onHeaders(this.#attempt, list, end)
  }

  onBody(chunk: Buffer, end: boolean): void {
    this.#sink.onBody(this.#attempt, chunk, end)
  }

  onTrailers(list: HeaderList): void {
    this.#sink.onTrailers(this.#attempt, list)
  }

  onDrained(): void {
    this.#sink.onDrained(this.#attempt)
  }

  onReset(reason: ResetReason): void {
    this.#sink.onReset(this.#attempt, reason)
  }
}
