// Independent writes in one transaction: one that fails is rolled back alone.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { StoreEvent } from '../../api/ports/object-store.ts'

/** One per store; used for one transaction after the other. */
export class StoreGroup {
  readonly #savepoint: StatementSync
  readonly #release: StatementSync
  readonly #undo: StatementSync
  /** Events that were not delivered yet; undefined = there is no group now. */
  #events: StoreEvent[] | undefined
  #broken: { readonly error: unknown } | undefined

  constructor(db: DatabaseSync) {
    this.#savepoint = db.prepare('SAVEPOINT one')
    this.#release = db.prepare('RELEASE one')
    this.#undo = db.prepare('ROLLBACK TO one')
  }

  get active(): boolean {
    return this.#events !== undefined
  }

  /** The transaction has begun. */
  begin(): void {
    this.#events = []
    this.#broken = undefined
  }

  /** The transaction ends. @returns its events */
  end(): readonly StoreEvent[] {
    const events = this.#events ?? []
    this.#events = undefined
    return events
  }

  /** @throws what `apply` throws; its writes are rolled back then */
  write(apply: () => readonly StoreEvent[]): readonly StoreEvent[] {
    this.check()
    try {
      this.#savepoint.run()
      const events = apply()
      this.#release.run()
      for (const event of events) this.#events?.push(event)
      return events
    } catch (error) {
      this.#undoOne(error)
      throw error
    }
  }

  /** @throws the error that broke the group: none of it was written, and nothing may be */
  check(): void {
    if (this.#broken !== undefined) throw this.#broken.error
  }

  /** After some disk errors SQLite has rolled back everything by itself; a later write would be outside of the transaction. */
  #undoOne(error: unknown): void {
    try {
      this.#undo.run()
      this.#release.run()
    } catch {
      this.#broken = { error }
    }
  }
}
