// Writes of one transaction that stand for themselves: one that fails is undone alone.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { StoreEvent } from '../../api/ports/object-store.ts'

/** One for a store; used for one transaction after the other. */
export class StoreGroup {
  readonly #savepoint: StatementSync
  readonly #release: StatementSync
  readonly #undo: StatementSync
  /** Of which nobody has heard; undefined = there is no group now. */
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

  /** The transaction is over, or will be in this moment. @returns what has happened in it */
  end(): readonly StoreEvent[] {
    const events = this.#events ?? []
    this.#events = undefined
    return events
  }

  /** @throws what `apply` throws, which is undone then */
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

  /** @throws what has broken the group: nothing of it was written, and nothing may be */
  check(): void {
    if (this.#broken !== undefined) throw this.#broken.error
  }

  /** After some errors of the disk SQLite has undone everything by itself; a write after that would be one alone. */
  #undoOne(error: unknown): void {
    try {
      this.#undo.run()
      this.#release.run()
    } catch {
      this.#broken = { error }
    }
  }
}
