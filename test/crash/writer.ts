// The process that is killed: writes at random through the store, without pause, until that happens.

import { writeSync } from 'node:fs'
import process from 'node:process'
import { StoreConflict, type StoreWrite } from '../../src/apiserver/api/object-store.ts'
import { openSqliteStore, type SqliteStore } from '../../src/apiserver/io/store/store.ts'
import { Random } from '../fuzz/random.ts'
import { digestOf, type JournalLine, RESOURCES, type WriterOrder } from './journal.ts'
import { spin } from './spin.ts'

const NAMES = 12
const SMALL_BYTES = 400
const LARGE_BYTES = 20_000
const HUGE_BYTES = 300_000

const order: WriterOrder = JSON.parse(process.argv[2] ?? '')
const random = new Random(order.seed, order.round)
const heard = new Map(Object.entries(order.watch))

function say(line: JournalLine): void {
  const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
  let written = 0
  while (written < bytes.length) {
    try {
      written += writeSync(1, bytes, written)
    } catch (error) {
      // The pipe is full: its reader is busy.
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error
    }
  }
}

function open(): SqliteStore {
  const { file, key, historyRevisions } = order
  const store = openSqliteStore({ file, key: Buffer.from(key, 'hex'), historyRevisions, historyMs: 0 })
  say({ kind: 'open', revision: store.revision })
  for (const [resource, after] of heard) {
    store.watch(resource, '', after, (event) => {
      heard.set(resource, event.revision)
      say({ kind: 'event', resource, revision: event.revision, digest: digestOf(event) })
    })
  }
  return store
}

function randomWrites(store: SqliteStore): StoreWrite[] {
  const writes: StoreWrite[] = []
  const length = random.oneIn(2) ? 1 : 1 + random.below(5)
  while (writes.length < length) {
    const key = {
      resource: random.pick(RESOURCES),
      namespace: random.pick(['', 'default']),
      name: `object-${random.below(NAMES)}`,
    }
    // Each object once: a later write would need the revision that an earlier one gets.
    if (writes.some((other) => other.resource === key.resource && other.name === key.name)) continue
    const found = store.get(key)
    const object = found !== undefined && random.oneIn(4) ? undefined : randomObject(key.name)
    const wrong = random.oneIn(60) ? 1 : 0
    writes.push({ ...key, object, expected: (found?.revision ?? 0) + wrong })
  }
  return writes
}

function randomObject(name: string): Record<string, unknown> {
  const limit = random.oneIn(100) ? HUGE_BYTES : random.oneIn(3) ? LARGE_BYTES : SMALL_BYTES
  const text = String.fromCharCode(97 + random.below(26)).repeat(random.below(limit))
  return { metadata: { name, labels: { n: String(random.below(1_000)) } }, data: { text } }
}

/** Several writes that go to disk together: the store has all of them afterwards, or none. */
function writeTogether(store: SqliteStore): void {
  const tried: StoreWrite[] = []
  const tasks = Array.from({ length: 2 + random.below(4) }, () => (): readonly number[] => {
    const writes = randomWrites(store)
    const written = store.write(writes)
    tried.push(...writes)
    return written.map(({ revision }) => revision)
  })
  const results = store.together([
    ...tasks,
    () => {
      if (tried.length > 0) say({ kind: 'try', writes: tried })
      return []
    },
  ])
  if (random.oneIn(4)) spin(random.below(3_000))
  const revisions = results.flatMap((result) => {
    if ('value' in result) return result.value
    if (!(result.error instanceof StoreConflict)) throw result.error
    return []
  })
  if (tried.length > 0) say({ kind: 'done', revisions })
}

let store = open()
for (let i = 0; i < (order.writes ?? Number.POSITIVE_INFINITY); i++) {
  // Closing moves the whole log into the database: also a moment to be killed in.
  if (random.oneIn(150)) {
    store.close()
    store = open()
  }
  if (random.oneIn(3)) {
    writeTogether(store)
    continue
  }
  const writes = randomWrites(store)
  say({ kind: 'try', writes })
  try {
    const written = store.write(writes)
    // Time to be killed between the write and its acknowledgement.
    if (random.oneIn(4)) spin(random.below(3_000))
    say({ kind: 'done', revisions: written.map(({ revision }) => revision) })
  } catch (error) {
    if (!(error instanceof StoreConflict)) throw error
    say({ kind: 'refused' })
  }
}
