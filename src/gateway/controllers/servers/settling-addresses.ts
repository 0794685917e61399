// Addresses in force of a server or an EndpointSlice: removed ones stay in use until one of the new ones is healthy.

import type { Clock } from '../../../kit/api/ports.ts'
import { addressesInForce } from '../../core/endpoints/resolution.ts'

interface SettlingDeps {
  /** Stands for what was in use before anything was known; may be among the addresses in force. */
  readonly before: string
  isHealthy(address: string): boolean
  readonly clock: Pick<Clock, 'monotonic'>
  /** The addresses in force have changed. */
  onChange(addresses: readonly string[]): void
}

/** Interval of checks whether a new address is healthy, while old ones stay in use ... */
const SETTLE_MS = 250
/** ... and their time limit. */
const SETTLE_WITHIN_MS = 30_000

export class SettlingAddresses {
  readonly #deps: SettlingDeps
  #inForce: readonly string[] = []
  #timer: NodeJS.Timeout | undefined
  /** Old addresses in use until new ones are healthy, with a time limit; undefined = none. */
  #leaving: { readonly before: readonly string[]; readonly untilMs: number } | undefined

  constructor(deps: SettlingDeps) {
    this.#deps = deps
  }

  /** Empty = unknown. */
  get inForce(): readonly string[] {
    return this.#inForce
  }

  /** Puts these in force, for now possibly together with the old ones. */
  want(wanted: readonly string[]): void {
    clearTimeout(this.#timer)
    const { before: first, clock, isHealthy, onChange } = this.#deps
    const nowMs = clock.monotonic()
    // One time limit for all changes meanwhile: a name that changes at each look-up would otherwise accumulate all its old addresses.
    this.#leaving ??= {
      before: this.#inForce.length === 0 ? [first] : this.#inForce,
      untilMs: nowMs + SETTLE_WITHIN_MS,
    }
    const { before, untilMs } = this.#leaving
    const next = nowMs >= untilMs ? wanted : addressesInForce(before, wanted, isHealthy)
    if (next.length === wanted.length) this.#leaving = undefined
    else {
      this.#timer = setTimeout(() => this.want(wanted), SETTLE_MS)
      this.#timer.unref()
    }
    if (next.join() === this.#inForce.join()) return
    this.#inForce = next
    onChange(next)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
