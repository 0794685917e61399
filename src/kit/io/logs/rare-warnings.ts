// Warnings of what others can cause any number of times: an instance for each kind, which writes one line in a while at most.

import { Budget } from '../../api/limits/budget.ts'
import type { Clock, Logger } from '../../api/ports.ts'

const RARE_WARNING_MS = 10_000

/** Its lines are examples, with addresses; how often it happens is what metrics count. */
export class RareWarnings {
  readonly #to: { readonly log: Logger; readonly clock: Clock }
  readonly #level: 'warn' | 'error'
  readonly #budget: Budget

  constructor(
    to: { readonly log: Logger; readonly clock: Clock },
    level: 'warn' | 'error' = 'warn',
    everyMs: number = RARE_WARNING_MS,
  ) {
    this.#to = to
    this.#level = level
    this.#budget = new Budget({ burst: 1, perSecond: 1000 / everyMs }, to.clock.monotonic())
  }

  warn(message: string, fields: Readonly<Record<string, unknown>>): void {
    const { log, clock } = this.#to
    if (this.#budget.take(clock.monotonic())) log[this.#level](message, fields)
  }
}
