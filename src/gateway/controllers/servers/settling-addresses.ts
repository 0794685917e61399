// The addresses that serve, of a server or of an EndpointSlice: those that have gone serve on until one of the others can.

import type { Clock } from '../../../kit/api/ports.ts'
import { addressesInForce } from '../../core/endpoints/resolution.ts'

export interface SettlingDeps {
  /** Stands for what served before anything was known; may be among the addresses in force. */
  readonly before: string
  isHealthy(address: string): boolean
  readonly clock: Pick<Clock, 'monotonic'>
  /** Others are in force now. */
  onChange(addresses: readonly string[]): void
}

/** How often it is looked whether a new address is healthy, while those before it serve on ... */
const SETTLE_MS = 250
/** ... and for how long at most. */
const SETTLE_WITHIN_MS = 30_000

export class SettlingAddresses {
  readonly #deps: SettlingDeps
  #inForce: readonly string[] = []
  #timer: NodeJS.Timeout | undefined
  /** What served before the addresses that are not healthy yet, and how long it may; undefined = nothing of it serves. */
  #leaving: { readonly before: readonly string[]; readonly untilMs: number } | undefined

  constructor(deps: SettlingDeps) {
    this.#deps = deps
  }

  /** Empty = nothing is known. */
  get inForce(): readonly string[] {
    return this.#inForce
  }

  /** Puts these in force, or for now together with those before. */
  want(wanted: readonly string[]): void {
    clearTimeout(this.#timer)
    const { before: first, clock, isHealthy, onChange } = this.#deps
    const nowMs = clock.monotonic()
    // One time for all changes meanwhile: a name that changes at each look-up would otherwise keep all that it ever was.
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
