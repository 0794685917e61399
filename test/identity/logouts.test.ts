// Logouts that replicas share by EndedSessions: what the others, and the next start, know of them, and what goes again.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, test } from 'node:test'
import { openSqliteStore, type SqliteStore } from '../../src/apiserver/io/store/store.ts'
import { createInProcessClient } from '../../src/apiserver/registry/in-process-client.ts'
import { Registry } from '../../src/apiserver/registry/registry.ts'
import { ENDED_SESSIONS } from '../../src/gateway/api/ended-session-kind.ts'
import type { EndedSession, TokenSession } from '../../src/gateway/api/token-session.ts'
import {
  endedSessionObject,
  Logouts,
  MAX_ENDED_OF_USER,
  MAX_ENDED_SESSIONS,
} from '../../src/gateway/controllers/logouts/logouts.ts'
import { MAX_TOKEN_LIFE_MS } from '../../src/gateway/core/logout/token-session.ts'
import { EndedSessions } from '../../src/gateway/state/ended-sessions.ts'
import { type JsonObject, nameOf } from '../../src/kit/api/json/json-object.ts'
import type { ObjectClient } from '../../src/kube/api/object-client.ts'
import { statusError } from '../../src/kube/api/status.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { waitFor } from '../harness/wait.ts'

const START = Date.parse('2026-06-01T00:00:00Z')
const NOW = START / 1000
const MINUTE_MS = 60_000
const SOURCE = 'a'.repeat(64)

let wallMs: number
let monotonicMs: number
let store: SqliteStore
let client: ObjectClient
let replicas: Replica[]

beforeEach(() => {
  wallMs = START
  monotonicMs = 5_000
  store = openSqliteStore({ file: ':memory:', key: undefined, now: () => wallMs })
  const world = { now: () => wallMs, uuid: randomUUID, random: Math.random }
  client = createInProcessClient(new Registry({ ...world, store, kinds: [ENDED_SESSIONS], pem: nodePemChecks }))
  replicas = []
})
afterEach(async () => {
  for (const { logouts } of replicas) await logouts.stop()
  store.close()
})

interface Replica {
  readonly logouts: Logouts
  /** As its threads have it. */
  readonly thread: EndedSessions
}

function replica(of: ObjectClient | 'none' = client): Replica {
  const thread = new EndedSessions()
  const quiet = (): void => undefined
  const logouts = new Logouts({
    client: of === 'none' ? undefined : of,
    clock: { now: () => wallMs, monotonic: () => monotonicMs },
    random: () => 0,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    publish: ({ id, ended }) => thread.set(id, ended),
  })
  const one = { logouts, thread }
  replicas.push(one)
  logouts.follow()
  return one
}

function logout(given: Partial<EndedSession> = {}): EndedSession {
  const issuer = 'https://login.test'
  return { issuer, source: SOURCE, audiences: ['a'], sid: 's1', sub: 'alice', endedSeconds: NOW, ...given }
}

function session(given: Partial<TokenSession> = {}): TokenSession {
  return { source: SOURCE, audiences: ['a'], sid: 's1', sub: 'alice', issuedSeconds: NOW - 60, ...given }
}

async function objects(): Promise<readonly JsonObject[]> {
  return (await client.list(ENDED_SESSIONS, '')).items
}

test('another replica, and one that starts later, know it; once more is the same', async () => {
  const [one, two] = [replica(), replica()]
  assert.equal(await one.logouts.end([logout()]), 'everywhere')
  assert.ok(one.thread.hasEnded(session()))
  await waitFor('the other replica', () => two.thread.hasEnded(session()))
  const later = replica()
  await waitFor('the later one', () => later.logouts.known && later.thread.hasEnded(session()))
  assert.ok(!later.thread.hasEnded(session({ sid: 's2' })))
  assert.equal(await two.logouts.end([logout()]), 'everywhere')
  assert.equal((await objects()).length, 1)
})

test('a later logout of all sessions of a user is one object, with the later time, also if the earlier is told afterwards', async () => {
  const [one, two] = [replica(), replica()]
  const all = { sid: '', sub: 'alice' }
  await one.logouts.end([logout({ ...all, endedSeconds: NOW - 100 })])
  await one.logouts.end([logout({ ...all, endedSeconds: NOW })])
  await two.logouts.end([logout({ ...all, endedSeconds: NOW - 50 })])
  assert.deepEqual(
    (await objects()).map(({ spec }) => (spec as { endedAt: string }).endedAt),
    ['2026-06-01T00:00:00Z'],
  )
  for (const { thread } of [one, two, replica()]) {
    await waitFor('the later time', () => thread.hasEnded(session({ issuedSeconds: NOW })))
    assert.ok(!thread.hasEnded(session({ issuedSeconds: NOW + 1 })))
  }
})

test('it is forgotten, and its object goes, when every token from before it has expired', async () => {
  const [one, two] = [replica(), replica()]
  await one.logouts.end([logout()])
  await waitFor('the other replica', () => two.thread.hasEnded(session()))
  wallMs += MAX_TOKEN_LIFE_MS - 1
  monotonicMs += 2 * MINUTE_MS
  one.logouts.tick()
  assert.ok(one.thread.hasEnded(session()))
  wallMs++
  monotonicMs += 2 * MINUTE_MS
  for (const { logouts } of [one, two]) logouts.tick()
  for (const { thread } of [one, two]) assert.equal(thread.size, 0)
  await waitFor('the object to go', async () => (await objects()).length === 0)
  // An old logout token has no effect.
  assert.equal(await one.logouts.end([logout()]), 'everywhere')
  assert.equal(one.thread.size, 0)
  assert.deepEqual(await objects(), [])
})

test('an object that an operator removes is taken back', async () => {
  const [one, two] = [replica(), replica()]
  await one.logouts.end([logout()])
  await waitFor('the other replica', () => two.thread.hasEnded(session()))
  const [object] = await objects()
  await client.delete(ENDED_SESSIONS, { namespace: '', name: nameOf(object ?? assert.fail()) })
  await waitFor('both', () => !one.thread.hasEnded(session()) && !two.thread.hasEnded(session()))
})

test('where it cannot be written, it is in force here, and the provider is told', async () => {
  const forbidden = () => Promise.reject(statusError('Forbidden', 'endedsessions is forbidden'))
  const denied = new Proxy(client, {
    get: (target, name) => (name === 'create' ? forbidden : Reflect.get(target, name).bind(target)),
  })
  const one = replica(denied)
  assert.equal(await one.logouts.end([logout()]), 'failed')
  assert.ok(one.thread.hasEnded(session()))
})

test('objects that are files: in force here', async () => {
  const { logouts, thread } = replica('none')
  assert.ok(logouts.known)
  assert.equal(await logouts.end([logout()]), 'here')
  assert.ok(thread.hasEnded(session()))
})

test('a user who logs out all day: at last one entry for all of the user, which ends no token from after it', async () => {
  const { logouts, thread } = replica('none')
  for (let n = 0; n < MAX_ENDED_OF_USER + 20; n++) {
    await logouts.end([logout({ sid: `s${n}`, endedSeconds: NOW + n })])
    assert.ok(thread.hasEnded(session({ sid: `s${n}`, issuedSeconds: NOW + n })), `s${n}`)
  }
  assert.equal(thread.size, MAX_ENDED_OF_USER + 1)
  assert.ok(!thread.hasEnded(session({ sid: 'next', issuedSeconds: NOW + MAX_ENDED_OF_USER + 20 })))
  assert.ok(!thread.hasEnded(session({ sub: 'bob' })))
})

test('too many users: the next logout is refused, those that are remembered stay', async () => {
  const { logouts, thread } = replica('none')
  for (let n = 0; n < MAX_ENDED_SESSIONS; n++) await logouts.end([logout({ sub: `u${n}` })])
  assert.equal(await logouts.end([logout({ sub: 'next' })]), 'full')
  assert.equal(thread.size, MAX_ENDED_SESSIONS)
  assert.ok(thread.hasEnded(session({ sub: 'u0' })))
  // The same once more needs no room.
  assert.equal(await logouts.end([logout({ sub: 'u0' })]), 'here')
})

test('objects that end nothing are left alone', async () => {
  const one = replica()
  const object = endedSessionObject('by-hand', logout())
  const { sid: _sid, sub: _sub, ...spec } = object['spec'] as Record<string, unknown>
  await assert.rejects(client.create(ENDED_SESSIONS, { ...object, spec }), /names no session and no user/)
  await client.create(ENDED_SESSIONS, object)
  await waitFor('one by hand', () => one.thread.hasEnded(session()))
})
