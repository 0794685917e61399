// The writes of a controller: one at a time per object; each persistent failure is reported once.

import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { StatusError } from '../../api/status.ts'

export class Writes {
  readonly #onFault: (key: string, why: string) => void
  readonly #running = new Map<string, Promise<void>>()
  /** Why the last write failed. */
  readonly #faults = new Map<string, string>()

  /** @param onFault called when a write has failed; once per fault, as long as it lasts */
  constructor(onFault: (key: string, why: string) => void) {
    this.#onFault = onFault
  }

  /** Whether a write is in flight: don't start another. */
  has(key: string): boolean {
    return this.#running.has(key)
  }

  /** Why the last write failed; '' = it didn't. */
  faultOf(key: string): string {
    return this.#faults.get(key) ?? ''
  }

  /** @param write in flight; after a failure the next check retries, with the state known by then */
  add(key: string, write: Promise<unknown>): void {
    this.#running.set(key, this.#ended(key, write))
  }

  /** The object is gone. */
  forget(key: string): void {
    this.#faults.delete(key)
  }

  /** Resolves when all writes in flight are done. */
  async ended(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  async #ended(key: string, write: Promise<unknown>): Promise<void> {
    try {
      await write
      this.#faults.delete(key)
    } catch (error) {
      // Otherwise another client has written or deleted it; the event is on its way here.
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
