// What must be in the store: everything acknowledged, and of the last attempt either all or nothing.

import assert from 'node:assert/strict'
import type { StoredObject, StoreEvent, StoreWrite } from '../../src/apiserver/api/object-store.ts'
import type { SqliteStore } from '../../src/apiserver/io/store/store.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { digestOf, type JournalLine, RESOURCES } from './journal.ts'

interface ExpectedEvent {
  readonly resource: string
  readonly revision: number
  readonly digest: string
}

export class ExpectedStore {
  readonly #objects = new Map<string, StoredObject>()
  readonly #events: ExpectedEvent[] = []
  /** Up to where the watcher of each resource has come, over all processes. */
  readonly #heard = new Map<string, number>(RESOURCES.map((resource) => [resource, 1]))
  #revision = 1
  #pending: readonly StoreWrite[] | undefined

  /** Nothing up to here may be lost. */
  get revision(): number {
    return this.#revision
  }

  heard(resource: string): number {
    return this.#heard.get(resource) ?? 1
  }

  /** @param watched resources that the writer watched */
  take(lines: readonly JournalLine[], watched: readonly string[]): void {
    for (const line of lines) {
      switch (line.kind) {
        case 'open':
          assert.equal(line.revision, this.#revision, 'a reopened store is where it was')
          break
        case 'try':
          this.#pending = line.writes
          break
        case 'refused':
          assert.notEqual(this.#conflict(), undefined, 'a write was refused without a conflict')
          this.#pending = undefined
          break
        case 'event':
          // Watchers hear of what is on disk: from now on it is as good as acknowledged.
          if (line.revision > this.#revision) this.#applyPending()
          this.#hear(line)
          break
        case 'done':
          if (this.#pending !== undefined) this.#applyPending()
          assert.equal(line.revisions.at(-1), this.#revision)
          for (const resource of watched)
            assert.equal(this.#next(resource), undefined, `a write returned before ${resource}`)
          break
      }
    }
  }

  /** Checks a store that was opened after the writer was killed. */
  check(store: SqliteStore): void {
    const pending = this.#pending?.length ?? 0
    const { revision } = store
    assert.ok(revision >= this.#revision, `LOST: the store is at ${revision}, acknowledged was ${this.#revision}`)
    if (pending > 0 && revision === this.#revision + pending) this.#applyPending()
    assert.equal(revision, this.#revision, `HALF WRITTEN: a transaction of ${pending} writes`)
    this.#pending = undefined
    for (const resource of RESOURCES) {
      const expected = [...this.#objects.values()].filter((object) => object.resource === resource).sort(byName)
      assert.deepEqual(store.list(resource, { namespace: '' }), expected, `${resource} differ`)
      assert.equal(store.count(resource, { namespace: '' }), expected.length)
    }
  }

  /** A watch of every resource from a revision hears what happened since, each once. */
  checkHistory(store: SqliteStore, after: number): void {
    for (const resource of RESOURCES) {
      const heard: ExpectedEvent[] = []
      const listen = (event: StoreEvent): number =>
        heard.push({ resource, revision: event.revision, digest: digestOf(event) })
      store.watch(resource, '', after, listen)()
      const expected = this.#events.filter((event) => event.resource === resource && event.revision > after)
      assert.deepEqual(heard, expected, `a watch of ${resource} from ${after}`)
    }
  }

  /** The next line of a watcher must be the next event of its resource: nothing missed, nothing twice. */
  #hear({ resource, revision, digest }: ExpectedEvent): void {
    assert.deepEqual(
      { resource, revision, digest },
      this.#next(resource),
      `a watcher resumed from ${this.heard(resource)}`,
    )
    this.#heard.set(resource, revision)
  }

  #next(resource: string): ExpectedEvent | undefined {
    const after = this.heard(resource)
    // From the end: a watcher is rarely far behind.
    let next: ExpectedEvent | undefined
    for (let i = this.#events.length - 1; i >= 0; i--) {
      const event = this.#events[i]
      if (event === undefined || event.revision <= after) break
      if (event.resource === resource) next = event
    }
    return next
  }

  #conflict(): StoreWrite | undefined {
    // One of several writes that go together may build on another.
    const written = new Map<string, number>()
    return this.#pending?.find((write, index) => {
      const id = idOf(write)
      const actual = written.get(id) ?? this.#objects.get(id)?.revision ?? 0
      written.set(id, write.object === undefined ? 0 : this.#revision + index + 1)
      return actual !== write.expected
    })
  }

  #applyPending(): void {
    assert.ok(this.#pending !== undefined, 'something was written that no client tried to write')
    assert.equal(this.#conflict(), undefined, 'a conflict was written')
    for (const write of this.#pending) this.#apply(write)
    this.#pending = undefined
  }

  #apply(write: StoreWrite): void {
    const { resource, namespace, name, object } = write
    this.#revision += 1
    const revision = this.#revision
    const before = this.#objects.get(idOf(write))
    const type = object === undefined ? 'DELETED' : before === undefined ? 'ADDED' : 'MODIFIED'
    const after = stamped(object ?? before?.object ?? {}, revision)
    if (object === undefined) this.#objects.delete(idOf(write))
    else this.#objects.set(idOf(write), { resource, namespace, name, revision, object: after })
    const digest = digestOf({ type, namespace, name, object: after, previous: before?.object })
    this.#events.push({ resource, revision, digest })
  }
}

function stamped(object: JsonObject, revision: number): JsonObject {
  return { ...object, metadata: { ...Object(object['metadata']), resourceVersion: String(revision) } }
}

function idOf({ resource, namespace, name }: StoreWrite): string {
  return `${resource} ${namespace} ${name}`
}

function byName(a: StoredObject, b: StoredObject): number {
  return Buffer.compare(Buffer.from(`${a.namespace}\0${a.name}`), Buffer.from(`${b.namespace}\0${b.name}`))
}
