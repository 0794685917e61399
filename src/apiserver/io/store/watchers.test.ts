import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreCompacted, type StoreEvent, type StoreWrite } from '../../api/object-store.ts'
import { openSqliteStore, type SqliteStore } from './store.ts'

const LOUD = new Error('a watcher that throws')

function put(name: string, expected = 0, namespace = '', resource = 'pods'): StoreWrite {
  return { resource, namespace, name, expected, object: { metadata: { name } } }
}

function shown({ type, name, revision }: StoreEvent): string {
  return `${type} ${name} ${revision}`
}

function memoryStore(errors: unknown[] = []): SqliteStore {
  return openSqliteStore({
    file: ':memory:',
    key: undefined,
    historyRevisions: 5,
    historyMs: 0,
    onWatcherError: (error) => errors.push(error),
  })
}

test('watchers hear of a write before it returns, in order, each of its resource and namespace only', () => {
  const store = memoryStore()
  const all: string[] = []
  const one: string[] = []
  const other: string[] = []
  store.watch('pods', '', 1, (event) => all.push(shown(event)))
  const stop = store.watch('pods', 'x', 1, (event) => one.push(shown(event)))
  store.watch('leases', '', 1, (event) => other.push(shown(event)))
  store.write([put('a', 0, 'x'), put('b', 0, 'y'), put('a', 2, 'x'), put('l', 0, 'x', 'leases')])
  assert.deepEqual(all, ['ADDED a 2', 'ADDED b 3', 'MODIFIED a 4'])
  assert.deepEqual(one, ['ADDED a 2', 'MODIFIED a 4'])
  assert.deepEqual(other, ['ADDED l 5'])
  stop()
  stop()
  store.write([{ ...put('a', 4, 'x'), object: undefined }])
  assert.equal(one.length, 2)
  assert.equal(all.length, 4)
  store.close()
})

test('events carry the state before; a deletion the last state with its own revision', () => {
  const store = memoryStore()
  store.write([put('a')])
  store.write([put('a', 2)])
  store.write([{ ...put('a', 3), object: undefined }])
  const live: StoreEvent[] = []
  store.watch('pods', '', 1, (event) => live.push(event))
  const state = (revision: number): object => ({ metadata: { name: 'a', resourceVersion: String(revision) } })
  assert.deepEqual(
    live.map(({ type, object, previous }) => ({ type, object, previous })),
    [
      { type: 'ADDED', object: state(2), previous: undefined },
      { type: 'MODIFIED', object: state(3), previous: state(2) },
      { type: 'DELETED', object: state(4), previous: state(3) },
    ],
  )
  store.close()
})

test('past events come first, then new ones, without a gap', () => {
  const store = memoryStore()
  for (let i = 0; i < 5; i++) store.write([put(`a${i}`)])
  const received: string[] = []
  store.watch('pods', '', 3, (event) => received.push(shown(event)))
  assert.deepEqual(received, ['ADDED a2 4', 'ADDED a3 5', 'ADDED a4 6'])
  store.write([put('b')])
  assert.equal(received.at(-1), 'ADDED b 7')
  for (let i = 0; i < 5; i++) store.write([put(`c${i}`)])
  assert.throws(() => store.watch('pods', '', 2, () => {}), StoreCompacted)
  store.close()
})

test('a watcher that throws affects neither the write nor the others, and gets the next event', () => {
  const errors: unknown[] = []
  const store = memoryStore(errors)
  store.write([put('a')])
  let calls = 0
  store.watch('pods', '', 1, () => {
    calls += 1
    throw LOUD
  })
  const received: string[] = []
  store.watch('pods', '', 1, (event) => received.push(shown(event)))
  assert.equal(store.write([put('b')])[0]?.revision, 3)
  assert.deepEqual(received, ['ADDED a 2', 'ADDED b 3'])
  assert.equal(calls, 2)
  assert.deepEqual(errors, [LOUD, LOUD])
  store.close()
})

test('what a watcher writes is on disk at once, and delivered after the current event was delivered to all', () => {
  const store = memoryStore()
  const log: string[] = []
  let depth = 0
  const watcher = (who: string, action: (event: StoreEvent) => void) => (event: StoreEvent) => {
    depth += 1
    assert.equal(depth, 1, 'an onEvent is called while another one runs')
    log.push(`${who} ${shown(event)}`)
    action(event)
    depth -= 1
  }
  store.watch(
    'pods',
    '',
    1,
    watcher('first', ({ name }) => {
      if (name !== 'a') return
      const [written] = store.write([put('b')])
      log.push(`wrote ${store.get({ resource: 'pods', namespace: '', name: 'b' })?.revision}`)
      assert.equal(written?.revision, 3)
    }),
  )
  store.watch(
    'pods',
    '',
    1,
    watcher('second', () => {}),
  )
  store.write([put('a')])
  assert.deepEqual(log, ['first ADDED a 2', 'wrote 3', 'second ADDED a 2', 'first ADDED b 3', 'second ADDED b 3'])
  store.close()
})

test('a watcher that writes, or is written to, while it catches up misses nothing and gets nothing twice', () => {
  const store = memoryStore()
  store.write([put('a')])
  store.write([put('b')])
  const other: string[] = []
  store.watch('pods', '', 1, (event) => other.push(shown(event)))
  const received: string[] = []
  store.watch('pods', '', 1, (event) => {
    received.push(shown(event))
    // More than the history keeps: none of it may be dropped while it is read.
    if (event.name === 'a') for (let i = 0; i < 20; i++) store.write([put(`c${i}`)])
    if (event.name === 'c19') store.write([put('last')])
  })
  const expected = [
    'ADDED a 2',
    'ADDED b 3',
    ...Array.from({ length: 20 }, (_, i) => `ADDED c${i} ${i + 4}`),
    'ADDED last 24',
  ]
  assert.deepEqual(received, expected)
  assert.deepEqual(other, expected)
  store.close()
})

test('a watch that begins or ends within an onEvent', () => {
  const store = memoryStore()
  const nested: string[] = []
  const once: string[] = []
  let depth = 0
  const stop = store.watch('pods', '', 1, (event) => {
    depth += 1
    once.push(shown(event))
    stop()
    store.watch('pods', '', 1, (inner) => {
      assert.equal(depth, 0)
      nested.push(shown(inner))
    })
    depth -= 1
  })
  store.write([put('a'), put('b')])
  store.write([put('c')])
  assert.deepEqual(once, ['ADDED a 2'])
  assert.deepEqual(nested, ['ADDED a 2', 'ADDED b 3', 'ADDED c 4'])
  store.close()
})
