// The writes of a controller: one at a time for each object, and what keeps failing is told once.

import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { StatusError } from '../../api/status.ts'

export class Writes {
  readonly #onFault: (key: string, why: string) => void
  readonly #running = new Map<string, Promise<void>>()
  /** Why the last write failed. */
  readonly #faults = new Map<string, string>()

  /** @param onFault a write has failed; called once for each fault, for as long as it lasts */
  constructor(onFault: (key: string, why: string) => void) {
    this.#onFault = onFault
  }

  /** A write is under way: there must not be another one. */
  has(key: string): boolean {
    return this.#running.has(key)
  }

  /** Why the last write failed; '' = it did not. */
  faultOf(key: string): string {
    return this.#faults.get(key) ?? ''
  }

  /** @param write under way; what failed is tried again by whoever looks next, from what is known by then */
  add(key: string, write: Promise<unknown>): void {
    this.#running.set(key, this.#ended(key, write))
  }

  /** The object is gone. */
  forget(key: string): void {
    this.#faults.delete(key)
  }

  /** Resolves when all that have begun are over. */
  async ended(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  async #ended(key: string, write: Promise<unknown>): Promise<void> {
    try {
      await write
      this.#faults.delete(key)
    } catch (error) {
      // Otherwise somebody has written since, or has deleted it: that is on its way here.
      if (!(error instanceof StatusError && (error.code === 409 || error.code === 404))) this.#fail(key, error)
    } finally {
      this.#running.delete(key)
    }
  }

  #fail(key: string, error: unknown): void {
    const why = errorMessage(error)
    if (why !== this.#faults.get(key)) this.#onFault(key, why)
    this.#faults.set(key, why)
  }
}
