// The store's watchers. onEvent calls are never nested: what a watcher writes, and new watches it starts, are delivered after the current event was
// delivered to every watcher, and before the outermost write() or watch() returns.

import type { StoreEvent } from '../../api/object-store.ts'

interface PastEvents {
  /** Events of a resource (and a namespace, unless '') after a revision, oldest first, at most one page. */
  after(resource: string, namespace: string, revision: number): readonly StoreEvent[]
}

class Watcher {
  readonly resource: string
  readonly namespace: string
  readonly onEvent: (event: StoreEvent) => void
  /** Called if history cannot be read. */
  readonly onFailure: (error: unknown) => void
  /** The last delivered revision. */
  last: number
  ended = false

  constructor(
    resource: string,
    namespace: string,
    after: number,
    onEvent: (event: StoreEvent) => void,
    onFailure: (error: unknown) => void,
  ) {
    this.resource = resource
    this.namespace = namespace
    this.last = after
    this.onEvent = onEvent
    this.onFailure = onFailure
  }

  wants(event: StoreEvent): boolean {
    if (this.ended || event.revision <= this.last || event.resource !== this.resource) return false
    return this.namespace === '' || event.namespace === this.namespace
  }
}

export class StoreWatchers {
  readonly #history: PastEvents
  readonly #report: (error: unknown) => void
  /** Watchers that receive events as they happen. */
  readonly #live = new Set<Watcher>()
  /** Watchers still catching up with past events. */
  readonly #behind: Watcher[] = []
  readonly #events: StoreEvent[] = []
  #delivering = false

  /** @param report called with what watchers throw; they stay registered */
  constructor(history: PastEvents, report: (error: unknown) => void) {
    this.#history = history
    this.#report = report
  }

  /** Whether history is being read: none of it may be dropped then. */
  get replaying(): boolean {
    return this.#behind.length > 0
  }

  add(resource: string, namespace: string, after: number, onEvent: (event: StoreEvent) => void): () => void {
    const failures: unknown[] = []
    // Within an onEvent, its turn comes after this call has returned.
    const onFailure = this.#delivering ? this.#report : (error: unknown): number => failures.push(error)
    const watcher = new Watcher(resource, namespace, after, onEvent, onFailure)
    this.#behind.push(watcher)
    this.#deliver()
    if (failures.length > 0) throw failures[0]
    return () => {
      watcher.ended = true
      this.#live.delete(watcher)
    }
  }

  announce(events: readonly StoreEvent[]): void {
    for (const event of events) this.#events.push(event)
    this.#deliver()
  }

  /** Ends all watches. */
  clear(): void {
    for (const watcher of [...this.#live, ...this.#behind]) watcher.ended = true
    this.#live.clear()
    this.#behind.length = 0
    this.#events.length = 0
  }

  #deliver(): void {
    if (this.#delivering) return
    this.#delivering = true
    try {
      for (;;) {
        const newcomer = this.#behind[0]
        if (newcomer !== undefined) {
          this.#catchUp(newcomer)
          continue
        }
        const event = this.#events.shift()
        if (event === undefined) return
        for (const watcher of this.#live) if (watcher.wants(event)) this.#tell(watcher, event)
      }
    } finally {
      this.#delivering = false
    }
  }

  /** Later writes are read here, too; when their event comes up, `last` shows that it has been delivered. */
  #catchUp(watcher: Watcher): void {
    try {
      for (;;) {
        const page = watcher.ended ? [] : this.#history.after(watcher.resource, watcher.namespace, watcher.last)
        if (page.length === 0) break
        for (const event of page) if (watcher.wants(event)) this.#tell(watcher, event)
      }
      if (!watcher.ended) this.#live.add(watcher)
    } catch (error) {
      // No events are better than events with a gap.
      watcher.onFailure(error)
    }
    const at = this.#behind.indexOf(watcher)
    if (at >= 0) this.#behind.splice(at, 1)
  }

  #tell(watcher: Watcher, event: StoreEvent): void {
    watcher.last = event.revision
    try {
      watcher.onEvent(event)
    } catch (error) {
      this.#report(error)
    }
  }
}
