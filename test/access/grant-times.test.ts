// What time makes of AccessGrants: their phases, what gateway threads are told, and clocks that jump.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, test } from 'node:test'
import { openSqliteStore, type SqliteStore } from '../../src/apiserver/io/store/store.ts'
import { createInProcessClient } from '../../src/apiserver/registry/in-process-client.ts'
import { Registry } from '../../src/apiserver/registry/registry.ts'
import type { AccessGrantInForce } from '../../src/gateway/core/identity/access-grants.ts'
import { AccessGrantController } from '../../src/grants/controllers/access-grants.ts'
import { ACCESS_GRANTS } from '../../src/grants/core/access-grant-kind.ts'
import { approved, endedByUser } from '../../src/grants/core/decisions.ts'
import { APPROVAL_WITHIN_MS, ENDED_KEPT_MS, readGrant } from '../../src/grants/core/read-grant.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import type { ObjectWriter } from '../../src/kube/api/resource-kind.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { waitFor } from '../harness/wait.ts'

const START = Date.parse('2026-06-01T00:00:00Z')
const HOUR_MS = 3_600_000
const AT = { namespace: '', name: 'one' }
const WRITE = { dryRun: false, fieldValidation: 'Strict', manager: 'test', force: false } as const

let wallMs: number
let monotonicMs: number
let store: SqliteStore
let registry: Registry
let controller: AccessGrantController
let inForce: readonly AccessGrantInForce[]
let publications: number
let changes: string[]

beforeEach(() => {
  wallMs = START
  monotonicMs = 5_000
  store = openSqliteStore({ file: ':memory:', key: undefined, now: () => wallMs })
  const world = { now: () => wallMs, uuid: randomUUID, random: Math.random }
  registry = new Registry({ ...world, store, kinds: [ACCESS_GRANTS], pem: nodePemChecks })
  begin()
})
afterEach(async () => {
  await controller.stop()
  store.close()
})

function begin(): void {
  inForce = []
  publications = 0
  changes = []
  const quiet = (): void => undefined
  controller = new AccessGrantController({
    client: createInProcessClient(registry),
    clock: { now: () => wallMs, monotonic: () => monotonicMs },
    random: Math.random,
    log: { debug: quiet, info: quiet, warn: quiet, error: assert.fail },
    onInForce: (grants) => {
      inForce = grants
      publications++
    },
    onChange: (change, object) => void changes.push(`${readGrant(object).name} ${change}`),
  })
}

function user(name: string): ObjectWriter {
  return { user: { name, uid: '', groups: [], extra: {} }, impersonates: false, may: () => true }
}

function ask(spec: object = {}): JsonObject {
  const value = {
    apiVersion: 'portcullis.io/v1alpha1',
    kind: 'AccessGrant',
    metadata: { name: 'one' },
    spec: {
      subject: { kind: 'User', name: 'alice' },
      clusters: ['prod'],
      groups: ['ops-admin'],
      reason: 'INC-1',
      durationSeconds: 3600,
      ...spec,
    },
  }
  const incoming = { value, duplicates: [], strictErrors: [], text: '' }
  return registry.create(ACCESS_GRANTS, '', incoming, { options: WRITE, warnings: [], by: user('alice') }).object
}

function set(object: JsonObject, status: object): void {
  const incoming = { value: { ...object, status }, duplicates: [], strictErrors: [], text: '' }
  registry.update(ACCESS_GRANTS, AT, 'status', incoming, { options: WRITE, warnings: [], isOwn: true })
}

function approve(object: JsonObject): void {
  set(object, approved(object, user('bob'), readGrant(object).uid, wallMs))
}

/** Both clocks go on, and the controller looks at them. */
function pass(ms: number): void {
  wallMs += ms
  monotonicMs += ms
  controller.tick()
}

function phase(): string {
  const found = store.get({ resource: 'accessgrants.portcullis.io', ...AT })
  return found === undefined ? 'gone' : readGrant(found.object).phase
}

function becomes(wanted: string): Promise<unknown> {
  return waitFor(`phase ${wanted}`, () => phase() === wanted)
}

function told(): readonly string[] {
  return inForce.map(({ name }) => name)
}

test('a grant is in force from its approval to its end', async () => {
  const asked = ask()
  await waitFor('it is known', () => controller.counts.get('Pending') === 1)
  assert.deepEqual(told(), [])
  approve(asked)
  await waitFor('it is in force', () => told().length === 1)
  const [grant] = inForce
  assert.deepEqual([grant?.fromMs, grant?.untilMs], [START, START + HOUR_MS])
  pass(HOUR_MS - 1)
  assert.deepEqual([told(), phase()], [['one'], 'Active'])
  pass(1)
  assert.deepEqual(told(), [], 'before anything is written')
  await becomes('Ended')
  assert.deepEqual(changes, ['one begun', 'one ended'])
})

test('one that begins later is told of before, and changes its phase then', async () => {
  approve(ask({ notBefore: new Date(START + HOUR_MS).toISOString() }))
  await waitFor('it is told', () => told().length === 1)
  assert.deepEqual([phase(), changes], ['Approved', []])
  assert.equal(inForce[0]?.fromMs, START + HOUR_MS)
  pass(HOUR_MS)
  await becomes('Active')
  assert.deepEqual(changes, ['one begun'])
  pass(HOUR_MS)
  await becomes('Ended')
})

test('what is not in force is not told to the threads', async () => {
  await waitFor('the first time', () => publications > 0)
  const before = publications
  const asked = ask()
  await waitFor('it is known', () => controller.counts.get('Pending') === 1)
  set(asked, endedByUser(asked, user('alice'), wallMs))
  await waitFor('its end is known', () => controller.counts.get('Pending') === 0)
  assert.equal(publications, before)
})

test('the end by a user and the deletion are ends at once', async () => {
  const asked = ask()
  approve(asked)
  await waitFor('it is in force', () => told().length === 1)
  const now = registry.get(ACCESS_GRANTS, AT)
  set(now, endedByUser(now, user('alice'), wallMs))
  await waitFor('it is told', () => told().length === 0)
  await createInProcessClient(registry).delete(ACCESS_GRANTS, AT)
  approve(ask())
  await waitFor('the other one is in force', () => told().length === 1)
  await createInProcessClient(registry).delete(ACCESS_GRANTS, AT)
  await waitFor('it is told', () => told().length === 0)
  assert.deepEqual(changes, ['one begun', 'one ended', 'one begun', 'one ended'])
})

test('a deletion that waits for a finalizer is an end, too', async () => {
  const asked = ask()
  approve(asked)
  await waitFor('it is in force', () => told().length === 1)
  const patch = {
    value: { metadata: { finalizers: ['example.com/hold'] } },
    duplicates: [],
    strictErrors: [],
    text: '',
  }
  const merge = 'application/merge-patch+json'
  registry.patch(ACCESS_GRANTS, AT, '', merge, patch, { options: WRITE, warnings: [] })
  await createInProcessClient(registry).delete(ACCESS_GRANTS, AT)
  await waitFor('it is told', () => told().length === 0)
})

test('a clock that is set back neither revives an ended grant nor prolongs one, also over a restart', async () => {
  approve(ask())
  await waitFor('it is in force', () => told().length === 1)
  pass(HOUR_MS / 2)
  wallMs -= HOUR_MS / 4
  pass(HOUR_MS / 2 - 1)
  assert.deepEqual(told(), ['one'])
  pass(1)
  assert.deepEqual(told(), [], 'an hour has passed, whatever the wall clock says')
  await becomes('Ended')
  wallMs = START
  await controller.stop()
  begin()
  await waitFor('it has read all', () => controller.counts.get('Active') === 0)
  pass(1000)
  assert.deepEqual([told(), phase(), changes], [[], 'Ended', []])
})

test('a clock that jumps ahead for a moment ends it for good', async () => {
  approve(ask())
  await waitFor('it is in force', () => told().length === 1)
  wallMs += 2 * HOUR_MS
  controller.tick()
  await becomes('Ended')
  wallMs -= 2 * HOUR_MS
  pass(1000)
  assert.deepEqual([told(), phase()], [[], 'Ended'])
})

test('a request that is not approved in a day has ended, and ended ones are removed after a month', async () => {
  ask()
  pass(APPROVAL_WITHIN_MS - 1)
  assert.equal(phase(), 'Pending')
  pass(1)
  await becomes('Ended')
  pass(ENDED_KEPT_MS - 1000)
  assert.equal(phase(), 'Ended')
  pass(1000)
  await becomes('gone')
})

test('what is missing in a status grants nothing', async () => {
  const asked = ask()
  approve(asked)
  await waitFor('it is in force', () => told().length === 1)
  const { status } = readGrant(registry.get(ACCESS_GRANTS, AT))
  for (const field of ['requestedBy', 'approvedBy', 'startsAt', 'endsAt', 'phase']) {
    const { [field]: _, ...rest } = status as Record<string, unknown>
    set(registry.get(ACCESS_GRANTS, AT), rest)
    await waitFor(`nothing is told without ${field}`, () => told().length === 0)
    set(registry.get(ACCESS_GRANTS, AT), status)
    await waitFor('it is told', () => told().length === 1)
  }
  set(registry.get(ACCESS_GRANTS, AT), { ...status, approvedBy: status.requestedBy })
  await waitFor('nothing is told that was approved by the asker', () => told().length === 0)
})
