// Rate-limits warnings that others can trigger at will: one instance per kind, which logs at most one line per interval.

import { Budget } from '../../api/limits/budget.ts'
import type { Clock, Logger } from '../../api/ports.ts'

const RARE_WARNING_MS = 10_000

/** Its lines are examples, with addresses; metrics count the occurrences. */
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
