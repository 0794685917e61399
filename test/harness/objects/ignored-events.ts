// Receivers of the ledger's and the aggregator's events that ignore them, for tests that look at something else.

import type { AggregatorEvents, ProtectionEvents } from '../../../src/protection/core/requests/protection-events.ts'

/** Ignores everything; spread it to handle only some. */
export const NO_PROTECTION_EVENTS: ProtectionEvents = {
  reviewed: () => undefined,
  executed: () => undefined,
  batch: () => undefined,
  submitted: () => undefined,
  released: () => undefined,
  indexed: () => undefined,
  malformed: () => undefined,
  following: () => undefined,
}

export const NO_AGGREGATOR_EVENTS: AggregatorEvents = {
  reconciled: () => undefined,
  enqueued: () => undefined,
  handled: () => undefined,
  pool: () => undefined,
  drained: () => undefined,
  trigger: () => undefined,
}
