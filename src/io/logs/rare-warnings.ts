// Warnings of what others can cause any number of times: an instance for each kind, which writes one line in a while at most.

import type { Clock, Logger } from '../../api/ports/ports.ts'

const RARE_WARNING_MS = 10_000

/** Its lines are examples, with addresses; how often it happens is what metrics count. */
export class RareWarnings {
  readonly #to: { readonly log: Logger; readonly clock: Clock }
  readonly #level: 'warn' | 'error'
  readonly #everyMs: number
  #toldMs = Number.NEGATIVE_INFINITY

  constructor(
    to: { readonly log: Logger; readonly clock: Clock },
    level: 'warn' | 'error' = 'warn',
    everyMs: number = RARE_WARNING_MS,
  ) {
    this.#to = to
    this.#level = level
    this.#everyMs = everyMs
  }

  warn(message: string, fields: Readonly<Record<string, unknown>>): void {
    const { log, clock } = this.#to
    const nowMs = clock.monotonic()
    if (nowMs - this.#toldMs < this.#everyMs) return
    this.#toldMs = nowMs
    log[this.#level](message, fields)
  }
}
