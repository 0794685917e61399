// The store against a deliberately simple model: Maps and arrays that forget nothing.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import {
  type ListRange,
  StoreCompacted,
  StoreConflict,
  type StoredObject,
  type StoreEvent,
  type StoreWrite,
} from '../../api/object-store.ts'
import { openSqliteStore, type SqliteStore } from './store.ts'

const HISTORY = 6
const AGE_MS = 1_000
const RESOURCES = ['secrets', 'leases']
const NAMESPACES = ['', 'n', 'n-1', '\uff5e', '\u{1f600}']
const NAMES = ['a', 'a.b', 'a-b', 'B', '\uff5e', '\u{1f600}']
const dir = mkdtempSync(join(tmpdir(), 'portcullis-model-'))
after(() => rmSync(dir, { recursive: true }))

class Model {
  /** State after each revision; index = revision. */
  readonly states: ReadonlyMap<string, StoredObject>[] = [new Map(), new Map()]
  readonly events: (StoreEvent & { readonly time: number })[] = []
  oldest = 0

  get revision(): number {
    return this.states.length - 1
  }

  get now(): ReadonlyMap<string, StoredObject> {
    return this.states.at(-1) ?? new Map()
  }

  /** undefined = a conflict. */
  write(writes: readonly StoreWrite[], time: number): readonly StoredObject[] | undefined {
    const states: Map<string, StoredObject>[] = []
    const events: StoreEvent[] = []
    for (const { resource, namespace, name, expected, object } of writes) {
      const state = new Map(states.at(-1) ?? this.now)
      const id = idOf({ resource, namespace, name })
      const before = state.get(id)
      if ((before?.revision ?? 0) !== expected) return undefined
      const revision = this.revision + states.length + 1
      const source: JsonObject = object ?? before?.object ?? {}
      const metadata = { ...Object(source['metadata']), resourceVersion: String(revision) }
      const stored = { resource, namespace, name, revision, object: { ...source, metadata } }
      if (object === undefined) state.delete(id)
      else state.set(id, stored)
      const type = object === undefined ? 'DELETED' : before === undefined ? 'ADDED' : 'MODIFIED'
      events.push({ type, ...stored, previous: before?.object })
      states.push(state)
    }
    this.#compact(time)
    this.states.push(...states)
    this.events.push(...events.map((event) => ({ ...event, time })))
    return events.map(({ type, previous, ...stored }) => stored)
  }

  list(resource: string, { namespace, after: start, limit, revision }: ListRange): StoredObject[] {
    const state = this.states[revision ?? this.revision] ?? this.now
    return [...state.values()]
      .filter((object) => object.resource === resource && (namespace === '' || object.namespace === namespace))
      .sort(byBytes)
      .filter((object) => start === undefined || byBytes(object, start) > 0)
      .slice(0, limit)
  }

  after(resource: string, namespace: string, revision: number): StoreEvent[] {
    return this.events
      .filter((event) => event.revision > revision && event.resource === resource)
      .filter((event) => namespace === '' || event.namespace === namespace)
      .map(({ time, ...event }) => event)
  }

  #compact(time: number): void {
    for (const event of this.events) {
      if (event.revision <= this.oldest) continue
      if (event.revision > this.revision - HISTORY || event.time > time - AGE_MS) return
      this.oldest = event.revision
    }
  }
}

interface Name {
  readonly namespace: string
  readonly name: string
}

function byBytes(a: Name, b: Name): number {
  const order = Buffer.compare(Buffer.from(a.namespace), Buffer.from(b.namespace))
  return order === 0 ? Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)) : order
}

function idOf({ resource, namespace, name }: Name & { readonly resource: string }): string {
  return JSON.stringify([resource, namespace, name])
}

const place = fc.record({ namespace: fc.constantFrom(...NAMESPACES), name: fc.constantFrom(...NAMES) })
const change = fc.record({
  resource: fc.constantFrom(...RESOURCES),
  place,
  value: fc.option(fc.jsonValue({ maxDepth: 2 }), { freq: 3 }),
  /** Most writers know the revision. */
  wrong: fc.integer({ min: 0, max: 15 }).map((n) => n === 0),
})
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never
const range = fc.record({
  resource: fc.constantFrom(...RESOURCES),
  namespace: fc.constantFrom(...NAMESPACES),
  after: fc.option(place),
  limit: fc.option(fc.integer({ min: 1, max: 6 })),
  back: fc.option(fc.integer({ min: 0, max: 12 })),
})
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('write' as const),
      changes: fc.array(change, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('together' as const),
      groups: fc.array(fc.array(change, { minLength: 1, maxLength: 3 }), { maxLength: 4 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('list' as const), range }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('watch' as const), range }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('unwatch' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 1_500 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** Runs both side by side. */
class Pair {
  readonly model = new Model()
  readonly #file: string
  readonly #key = Buffer.alloc(32, 7)
  #store: SqliteStore
  #now = 1_000_000
  #watches: { readonly received: StoreEvent[]; readonly expected: () => StoreEvent[]; readonly stop: () => void }[] = []

  constructor(file: string) {
    this.#file = file
    this.#store = this.#open()
  }

  run(next: Step): void {
    switch (next.do) {
      case 'write':
        this.#write(next.changes)
        break
      case 'together':
        this.#together(next.groups)
        break
      case 'list':
        this.#list(next.range)
        break
      case 'watch':
        this.#watch(next.range)
        break
      case 'unwatch':
        this.#watches.shift()?.stop()
        break
      case 'wait':
        this.#now += next.ms
        break
      case 'reopen':
        this.close()
        this.#store = this.#open()
        this.#watches = []
        break
    }
    assert.equal(this.#store.revision, this.model.revision)
    for (const { received, expected } of this.#watches) assert.deepEqual(received, expected())
  }

  close(): void {
    this.#store.close()
  }

  #open(): SqliteStore {
    const options = { historyRevisions: HISTORY, historyMs: AGE_MS, now: () => this.#now }
    return openSqliteStore({ file: this.#file, key: this.#key, ...options })
  }

  #write(changes: readonly Change[]): void {
    const writes = this.#writesOf(changes)
    const expected = this.model.write(writes, this.#now)
    if (expected === undefined) assert.throws(() => this.#store.write(writes), StoreConflict)
    // Compared as JSON: -0 becomes 0.
    else assert.equal(JSON.stringify(this.#store.write(writes)), JSON.stringify(expected))
  }

  /** Like sequential writes, but watchers are not notified before the end. */
  #together(groups: readonly (readonly Change[])[]): void {
    const countsBefore = this.#watches.map(({ received }) => received.length)
    const expected: (readonly StoredObject[] | undefined)[] = []
    const results = this.#store.together(
      groups.map((changes) => () => {
        const writes = this.#writesOf(changes)
        expected.push(this.model.write(writes, this.#now))
        const written = this.#store.write(writes)
        const received = this.#watches.map(({ received: events }) => events.length)
        assert.deepEqual(received, countsBefore)
        // A task can read what it has written.
        for (const { resource, namespace, name } of writes) {
          const known = this.model.now.get(idOf({ resource, namespace, name }))
          assert.equal(this.#store.get({ resource, namespace, name })?.revision, known?.revision)
        }
        return written
      }),
    )
    for (const [index, result] of results.entries()) {
      if (expected[index] === undefined) assert.ok('error' in result && result.error instanceof StoreConflict)
      else assert.equal('value' in result && JSON.stringify(result.value), JSON.stringify(expected[index]))
    }
    assert.equal(results.length, groups.length)
  }

  #writesOf(changes: readonly Change[]): readonly StoreWrite[] {
    const seen = new Map<string, number>()
    return changes.map(({ resource, place: at, value, wrong }, index): StoreWrite => {
      const id = idOf({ resource, ...at })
      const now = seen.get(id) ?? this.model.now.get(id)?.revision ?? 0
      const object = value === null && now !== 0 ? undefined : { metadata: { name: at.name }, value }
      seen.set(id, object === undefined ? 0 : this.model.revision + index + 1)
      return { resource, ...at, object, expected: wrong ? now + 1 : now }
    })
  }

  #list({ resource, namespace, after: start, limit, back }: Extract<Step, { do: 'list' }>['range']): void {
    const revision = back === null ? undefined : Math.max(0, this.model.revision - back)
    const asked: ListRange = {
      namespace,
      ...(start !== null && { after: start }),
      ...(limit !== null && { limit }),
      ...(revision !== undefined && { revision }),
    }
    if (revision !== undefined && revision < this.model.oldest) {
      assert.throws(() => this.#store.list(resource, asked), StoreCompacted)
      assert.throws(() => this.#store.count(resource, asked), StoreCompacted)
      return
    }
    assert.equal(JSON.stringify(this.#store.list(resource, asked)), JSON.stringify(this.model.list(resource, asked)))
    const { limit: _, ...whole } = asked
    assert.equal(this.#store.count(resource, asked), this.model.list(resource, whole).length)
    const first = this.model.list(resource, asked)[0]
    if (first !== undefined && revision === undefined)
      assert.deepEqual(this.#store.get(first)?.revision, first.revision)
  }

  #watch({ resource, namespace, back }: Extract<Step, { do: 'watch' }>['range']): void {
    const from = Math.max(0, this.model.revision - (back ?? 0))
    const received: StoreEvent[] = []
    const listen = (): (() => void) =>
      this.#store.watch(resource, namespace, from, (event) => received.push(plain(event)))
    if (from < this.model.oldest) {
      assert.throws(listen, (error) => error instanceof StoreCompacted && error.oldest === this.model.oldest)
      return
    }
    const expected = (): StoreEvent[] => this.model.after(resource, namespace, from).map(plain)
    this.#watches.push({ received, expected, stop: listen() })
  }
}

/** Converted to JSON: without prototypes and -0. */
function plain(event: StoreEvent): StoreEvent {
  return JSON.parse(JSON.stringify(event))
}

test('property: the store does what the model does', () => {
  let runs = 0
  fc.assert(
    fc.property(fc.array(step, { minLength: 10, maxLength: 80, size: 'max' }), (steps) => {
      runs += 1
      const pair = new Pair(join(dir, String(runs), 'store.db'))
      try {
        for (const next of steps) pair.run(next)
      } finally {
        pair.close()
      }
    }),
    { numRuns: 60 },
  )
})
