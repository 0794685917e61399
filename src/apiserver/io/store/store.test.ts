import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { StatusError } from '../../../kube/api/status.ts'
import { StoreCompacted, StoreConflict, type StoreEvent, type StoreWrite } from '../../api/object-store.ts'
import { openSqliteStore, type SqliteStore, type SqliteStoreOptions } from './store.ts'

const RESOURCE = 'upstreamclusters.proxy.kubegateway.io'

function memoryStore(options: Partial<SqliteStoreOptions> = {}): SqliteStore {
  return openSqliteStore({ file: ':memory:', key: undefined, ...options })
}

function put(name: string, expected: number, spec: unknown = {}, namespace = '', resource = RESOURCE): StoreWrite {
  return { resource, namespace, name, expected, object: { metadata: { name }, spec } }
}

function remove(name: string, expected: number, namespace = ''): StoreWrite {
  return { resource: RESOURCE, namespace, name, expected, object: undefined }
}

function names(store: SqliteStore, range: Partial<Parameters<SqliteStore['list']>[1]> = {}): string[] {
  return store.list(RESOURCE, { namespace: '', ...range }).map(({ namespace, name }) => `${namespace}/${name}`)
}

test('a new store is at revision 1, and each write takes the next one', () => {
  using store = closing(memoryStore())
  assert.equal(store.revision, 1)
  const [first] = store.write([put('a', 0)])
  assert.equal(first?.revision, 2)
  assert.deepEqual(first.object, { metadata: { name: 'a', resourceVersion: '2' }, spec: {} })
  const both = store.write([put('a', 2, { x: 1 }), put('b', 0)])
  assert.deepEqual(
    both.map(({ revision }) => revision),
    [3, 4],
  )
  const [gone] = store.write([remove('b', 4)])
  assert.deepEqual(gone?.object, { metadata: { name: 'b', resourceVersion: '5' }, spec: {} })
  assert.equal(store.revision, 5)
  assert.equal(store.get({ resource: RESOURCE, namespace: '', name: 'b' }), undefined)
  assert.deepEqual(store.write([]), [])
  assert.equal(store.revision, 5)
})

test('a conflict anywhere in a transaction leaves everything as it was', () => {
  using store = closing(memoryStore())
  store.write([put('a', 0, 1)])
  const received: StoreEvent[] = []
  store.watch(RESOURCE, '', store.revision, (event) => received.push(event))
  for (const [wrong, actual] of [
    [put('a', 0), 2],
    [put('a', 1), 2],
    [put('new', 7), 0],
    [remove('a', 1), 2],
    [remove('new', 3), 0],
  ] as const) {
    assert.throws(
      () => store.write([put('b', 0), put('a', 2, 2), wrong]),
      (error) =>
        error instanceof StoreConflict &&
        error.key.name === wrong.name &&
        error.actual === (wrong.name === 'a' ? 4 : actual),
    )
    assert.throws(
      () => store.write([wrong]),
      (error) => error instanceof StoreConflict && error.actual === actual,
    )
  }
  assert.throws(() => store.write([put('c', 0), remove('new', 0)]), TypeError)
  assert.equal(store.revision, 2)
  assert.deepEqual(names(store), ['/a'])
  assert.equal(received.length, 0)
  // Reads cached by the failed transaction must not be taken for what replaced it.
  store.write([put('d', 0, 'd')])
  assert.deepEqual(store.get({ resource: RESOURCE, namespace: '', name: 'd' })?.object['spec'], 'd')
})

test('one transaction may write an object several times', () => {
  using store = closing(memoryStore())
  const received: string[] = []
  store.watch(RESOURCE, '', 1, ({ type, revision }) => received.push(`${type} ${revision}`))
  store.write([put('a', 0, 1), put('a', 2, 2), remove('a', 3), put('a', 0, 3)])
  assert.deepEqual(received, ['ADDED 2', 'MODIFIED 3', 'DELETED 4', 'ADDED 5'])
  assert.equal(store.get({ resource: RESOURCE, namespace: '', name: 'a' })?.revision, 5)
})

test('lists are in the order of UTF-8 bytes, by namespace and then by name', () => {
  using store = closing(memoryStore())
  // U+FF5E is smaller than U+1F600 as UTF-8, larger as UTF-16; '-' sorts before '.'.
  const sorted = ['', 'B', 'a', 'a-b', 'a.b', 'ab', '\uff5e', '\u{1f600}']
  const pairs = sorted.flatMap((namespace) => sorted.map((name) => ({ namespace, name })))
  for (const { namespace, name } of [...pairs].reverse()) store.write([put(name, 0, {}, namespace)])
  const expected = pairs.map(({ namespace, name }) => `${namespace}/${name}`)
  assert.deepEqual(names(store), expected)
  for (const limit of [1, 7, 64, 100]) {
    const pages: string[] = []
    let after: { namespace: string; name: string } | undefined
    for (;;) {
      const page = store.list(RESOURCE, { namespace: '', limit, ...(after && { after }) })
      const last = page.at(-1)
      if (last === undefined) break
      assert.equal(store.count(RESOURCE, { namespace: '', limit, ...(after && { after }) }), 64 - pages.length)
      pages.push(...page.map(({ namespace, name }) => `${namespace}/${name}`))
      after = last
    }
    assert.deepEqual(pages, expected)
  }
  assert.deepEqual(names(store, { namespace: 'a', after: { namespace: 'a', name: 'a.b' } }), [
    'a/ab',
    'a/\uff5e',
    'a/\u{1f600}',
  ])
  assert.deepEqual(store.list('secrets', { namespace: '' }), [])
})

test('a list of an older revision shows the state of that revision', () => {
  using store = closing(memoryStore())
  store.write([put('a', 0, 1), put('b', 0, 1), put('c', 0, 1)])
  const then = store.revision
  const before = store.list(RESOURCE, { namespace: '' })
  store.write([put('a', 2, 2), remove('b', 3), put('d', 0)])
  store.write([put('b', 0, 'again'), remove('a', 5)])
  assert.deepEqual(store.list(RESOURCE, { namespace: '', revision: then }), before)
  assert.equal(store.count(RESOURCE, { namespace: '', revision: then }), 3)
  assert.deepEqual(names(store, { revision: then, limit: 1, after: { namespace: '', name: 'a' } }), ['/b'])
  assert.deepEqual(names(store, { revision: 7 }), ['/a', '/c', '/d'])
  assert.deepEqual(names(store, { revision: 1 }), [])
  assert.deepEqual(names(store), ['/b', '/c', '/d'])
})

test('history is kept by number or by age, whichever is more, and never beyond its bytes', () => {
  let now = 1_000_000
  using store = closing(memoryStore({ historyRevisions: 3, historyMs: 60_000, now: () => now }))
  for (let i = 0; i < 10; i++) store.write([put(`a${i}`, 0)])
  assert.equal(eventsAfter(store, 1).length, 10)
  now += 60_000
  store.write([put('b', 0)])
  assert.throws(
    () => eventsAfter(store, 7),
    (error) => error instanceof StoreCompacted && error.oldest === 8,
  )
  assert.throws(() => store.list(RESOURCE, { namespace: '', revision: 7 }), StoreCompacted)
  assert.throws(() => store.count(RESOURCE, { namespace: '', revision: 7 }), StoreCompacted)
  assert.deepEqual(eventsAfter(store, 8), ['ADDED 9', 'ADDED 10', 'ADDED 11', 'ADDED 12'])
  assert.equal(store.list(RESOURCE, { namespace: '', revision: 8 }).length, 7)

  using small = closing(memoryStore({ historyBytes: 10_000, now: () => now }))
  small.write([put('a', 0, 'x'.repeat(1_000))])
  for (let revision = 2; revision < 40; revision++) small.write([put('a', revision, 'x'.repeat(1_000))])
  assert.throws(() => eventsAfter(small, 20), StoreCompacted)
  assert.equal(eventsAfter(small, 35).length, 5)
})

test('changes by a caller to its object, or to ours, do not affect the store', () => {
  using store = closing(memoryStore())
  const spec = { inner: { list: [1] } }
  const [written] = store.write([put('a', 0, spec)])
  spec.inner.list.push(2)
  const read = store.get({ resource: RESOURCE, namespace: '', name: 'a' })
  assert.deepEqual(read?.object['spec'], { inner: { list: [1] } })
  assert.throws(() => Object.assign(Object(read.object['spec']).inner, { list: [] }), TypeError)
  assert.throws(() => Object.assign(Object(written?.object['metadata']), { name: 'b' }), TypeError)
})

test('names of JavaScript itself are names as any other', () => {
  using store = closing(memoryStore())
  const object = JSON.parse('{"metadata":{"name":"__proto__"},"__proto__":{"polluted":1},"constructor":{"x":2}}')
  store.write([{ resource: RESOURCE, namespace: '__proto__', name: 'constructor', expected: 0, object }])
  const read = store.get({ resource: RESOURCE, namespace: '__proto__', name: 'constructor' })
  assert.equal(
    JSON.stringify(read?.object),
    '{"metadata":{"name":"__proto__","resourceVersion":"2"},"__proto__":{"polluted":1},"constructor":{"x":2}}',
  )
  assert.equal(Object(read?.object).polluted, undefined)
})

test('a full store refuses a write as a whole, says why, and takes smaller ones', () => {
  using store = closing(memoryStore({ maxBytes: 1_000_000 }))
  store.write([put('a', 0, 'a')])
  assert.throws(
    () => store.write([put('b', 0), put('big', 0, 'x'.repeat(2_000_000))]),
    (error) =>
      error instanceof StatusError &&
      error.code === 500 &&
      /store :memory: is full.*nothing was written/.test(error.message),
  )
  assert.equal(store.revision, 2)
  assert.deepEqual(names(store), ['/a'])
  store.write([put('b', 0, 'b'), remove('a', 2)])
  assert.deepEqual(names(store), ['/b'])
})

test('together: each write is independent, all events are delivered at the end, and no watch can start within', () => {
  using store = closing(memoryStore())
  const received: string[] = []
  store.watch(RESOURCE, '', 1, ({ type, name, revision }) => received.push(`${type} ${name} ${revision}`))
  const results = store.together<unknown>([
    () => store.write([put('a', 0)])[0]?.revision,
    () => store.write([put('b', 0), put('a', 9)]),
    () => store.write([put('a', 2, 'second')])[0]?.revision,
    () => store.watch(RESOURCE, '', 1, () => undefined),
    () => store.together([() => store.write([put('nested', 0)])]),
    () => received.length,
  ])
  assert.deepEqual(
    results.map((result) => ('value' in result ? result.value : result.error instanceof Error && result.error.name)),
    [2, 'StoreConflict', 3, 'TypeError', 'TypeError', 0],
  )
  assert.deepEqual(received, ['ADDED a 2', 'MODIFIED a 3'])
  assert.equal(store.revision, 3)
  assert.deepEqual(eventsAfter(store, 1), ['ADDED 2', 'MODIFIED 3'])
  assert.deepEqual(store.together([]), [])
  // The undone write's revision is now used by another write.
  store.write([put('c', 0, 'c')])
  assert.deepEqual(store.get({ resource: RESOURCE, namespace: '', name: 'c' })?.object['spec'], 'c')
})

test('together: one that does not fit does not fail the others', () => {
  using store = closing(memoryStore({ maxBytes: 1_000_000 }))
  const received: string[] = []
  store.watch(RESOURCE, '', 1, ({ type, name, revision }) => received.push(`${type} ${name} ${revision}`))
  const results = store.together<unknown>([
    () => store.write([put('a', 0)])[0]?.revision,
    () => store.write([put('big', 0, 'x'.repeat(2_000_000))]),
    () => store.write([put('b', 0)])[0]?.revision,
  ])
  assert.deepEqual(
    results.map((result) => ('value' in result ? result.value : result.error instanceof StatusError && 'full')),
    [2, 'full', 3],
  )
  assert.deepEqual(received, ['ADDED a 2', 'ADDED b 3'])
  assert.deepEqual([store.revision, names(store)], [3, ['/a', '/b']])
})

test('together: when the disk fails all fail, nothing was written, and no event is delivered', () => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-store-'))
  const file = join(dir, 'store.db')
  try {
    const broken = openSqliteStore({ file, key: undefined })
    broken.write([put('kept', 0)])
    const received = new Set<string>()
    broken.watch(RESOURCE, '', 2, ({ name }) => received.add(name))
    const results = broken.together<unknown>([
      () => broken.write([put('a', 0)]),
      // Simulates a failing disk.
      () => broken.close(),
      () => broken.write([put('b', 0)]),
      () => 'read only',
    ])
    assert.deepEqual(
      results.map((result) => 'error' in result),
      [true, true, true, true],
    )
    assert.equal(broken.revision, 2)
    assert.deepEqual(
      broken.together([() => 1]).map((result) => 'error' in result),
      [true],
    )
    assert.equal(received.size, 0)
    using store = closing(openSqliteStore({ file, key: undefined }))
    assert.deepEqual(names(store), ['/kept'])
    assert.equal(store.revision, 2)
  } finally {
    rmSync(dir, { recursive: true })
  }
})

function eventsAfter(store: SqliteStore, after: number): string[] {
  const received: string[] = []
  store.watch(RESOURCE, '', after, ({ type, revision }) => received.push(`${type} ${revision}`))()
  return received
}

function closing(store: SqliteStore): SqliteStore & Disposable {
  return Object.assign(store, { [Symbol.dispose]: () => store.close() })
}
