// Warnings of what clients can cause any number of times: an instance for each kind, which writes one line in ten seconds at most.

import type { Gateway } from '../../../gateway/exchange/gateway.ts'

const RARE_WARNING_MS = 10_000

/** Its lines are examples, with addresses; how often it happens is what metrics count. */
export class RareWarnings {
  readonly #gateway: Pick<Gateway, 'log' | 'clock'>
  #toldMs = Number.NEGATIVE_INFINITY

  constructor(gateway: Pick<Gateway, 'log' | 'clock'>) {
    this.#gateway = gateway
  }

  warn(message: string, fields: Readonly<Record<string, unknown>>): void {
    const { log, clock } = this.#gateway
    const nowMs = clock.monotonic()
    if (nowMs - this.#toldMs < RARE_WARNING_MS) return
    this.#toldMs = nowMs
    log.warn(message, fields)
  }
}
