// A controller that polls its objects, because some of its inputs change without an event. It decides only while this replica leads
// and its objects are current, and never about an object with a write in flight.

import { Informer, type InformerOptions } from './informer.ts'
import type { Leading, Tenant, Term } from './leadership.ts'
import { Writes } from './writes.ts'

interface ControllerOptions<T> extends InformerOptions<T> {
  /** For logs. */
  readonly name: string
  /** Decides while this replica leads. */
  readonly leadership: Leading
  /** Decides about one object. @returns the pending write, which may reject; undefined = no write */
  reconcile(key: string, kept: T): Promise<void> | undefined
  /** Deciding is not possible: another replica leads, or the API server is unreachable and the object may have changed there. */
  pause(key: string, kept: T): void
  /** Between two checks of an object, milliseconds. */
  readonly everyMs: number
  /** See Writes. */
  onFault(key: string, why: string): void
}

export class Controller<T> {
  readonly #options: ControllerOptions<T>
  readonly #informer: Informer<T>
  readonly #writes: Writes
  readonly #tenant: Tenant

  constructor(options: ControllerOptions<T>) {
    this.#options = options
    this.#writes = new Writes(options.onFault)
    this.#informer = new Informer({ ...options, onGone: (kept, key) => this.#gone(kept, key) })
    this.#tenant = options.leadership.run(options.name, (term) => this.#lead(term))
  }

  get objects(): ReadonlyMap<string, T> {
    return this.#informer.objects
  }

  async stop(): Promise<void> {
    await this.#tenant.leave()
    await this.#informer.stop()
    await this.#writes.ended()
  }

  #gone(kept: T, key: string): void {
    this.#writes.forget(key)
    this.#options.onGone?.(kept, key)
  }

  #lead(term: Term): { stop(): void } {
    const timer = setInterval(() => this.#look(term), this.#options.everyMs)
    timer.unref()
    return {
      stop: () => {
        clearInterval(timer)
        for (const [key, kept] of this.objects) this.#options.pause(key, kept)
      },
    }
  }

  #look(term: Term): void {
    const mayDecide = term.holds() && this.#informer.current
    for (const [key, kept] of this.objects) {
      if (!mayDecide) this.#options.pause(key, kept)
      else if (!this.#writes.has(key)) {
        const write = this.#options.reconcile(key, kept)
        if (write !== undefined) this.#writes.add(key, write)
      }
    }
  }
}
