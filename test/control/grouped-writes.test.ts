// Writes of many clients at once: the disk is waited for once for those of one turn of the event loop, and each is what it would be alone.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import type { ObjectStore, TaskResult } from '../../src/apiserver/api/object-store.ts'
import { openSqliteStore } from '../../src/apiserver/io/store/store.ts'
import type { Incoming } from '../../src/apiserver/objects/write-object-decode.ts'
import { Registry } from '../../src/apiserver/registry/registry.ts'
import { REVOKED_CREDENTIALS } from '../../src/gateway/api/revoked-credential-kind.ts'
import { UPSTREAM_CLUSTERS } from '../../src/gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { issueControlCertificate } from '../../src/pki/io/control-pki.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { SCHEME } from '../../src/program/api/scheme.ts'
import { ControlClient, cluster, UC } from '../harness/clients/control-client.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { startControl } from '../harness/gateways/control.ts'

const MANY = 60
const PARTS = { kinds: SCHEME, pem: nodePemChecks, now: Date.now, uuid: randomUUID, random: Math.random }
const OPTIONS = { dryRun: false, fieldValidation: 'Strict', manager: 'test', force: false } as const

/** Counts the transactions, each of which is one wait for the disk, and what is written in each. */
function counted(t: TestContext, store: ObjectStore): number[] {
  const sizes: number[] = []
  const together = store.together.bind(store)
  t.mock.method(store, 'together', <T>(tasks: Iterable<() => T>): readonly TaskResult<T>[] => {
    const results = together(tasks)
    sizes.push(results.length)
    return results
  })
  return sizes
}

function incoming(value: unknown): Incoming {
  return { value, duplicates: [], strictErrors: [], text: '' }
}

function registryOf(t: TestContext): { registry: Registry; patch(name: string, spec: object): Promise<JsonObject> } {
  // Keeps the slice from ending, however busy the machine is.
  t.mock.method(performance, 'now', () => 0)
  const store = openSqliteStore({ file: ':memory:', key: undefined })
  t.after(() => store.close())
  const registry = new Registry({ ...PARTS, store })
  const patch = (name: string, spec: object): Promise<JsonObject> => {
    const call = { options: OPTIONS, warnings: [] }
    const at = { namespace: '', name }
    const type = 'application/merge-patch+json'
    return registry.together(() => registry.patch(UPSTREAM_CLUSTERS, at, '', type, incoming({ spec }), call).object)
  }
  for (let n = 0; n < MANY; n++) {
    registry.create(UPSTREAM_CLUSTERS, '', incoming(cluster(`c-${n}`)), { options: OPTIONS, warnings: [] })
  }
  return { registry, patch }
}

test(`${MANY} switches of one turn are one transaction`, async (t) => {
  const { registry, patch } = registryOf(t)
  const sizes = counted(t, registry.store)
  const degrade = { mode: 'ReadOnly', reason: 'INC-1' }
  const after = await Promise.all(Array.from({ length: MANY }, (_, n) => patch(`c-${n}`, { degrade })))
  assert.deepEqual(sizes, [MANY])
  for (const { spec } of after) assert.equal((spec as { degrade: { mode: string } }).degrade.mode, 'ReadOnly')
})

test('two that claim the same name in one turn: the second one is refused, as if it had come later', async (t) => {
  const { registry, patch } = registryOf(t)
  const sizes = counted(t, registry.store)
  const secureServing = { serverNames: ['taken.example.com'] }
  const outcomes = await Promise.allSettled([
    patch('c-0', { degrade: { mode: 'Limited', reason: 'x' } }),
    patch('c-1', { secureServing }),
    patch('c-2', { secureServing }),
    patch('c-3', { degrade: { mode: 'Limited', reason: 'x' } }),
    patch('c-1', { secureServing: null }),
    patch('c-4', { secureServing }),
  ])
  const said = outcomes.map((one) => (one.status === 'fulfilled' ? 'written' : String(one.reason.message)))
  assert.deepEqual([said[0], said[1], said[3], said[4], said[5]], Array(5).fill('written'))
  assert.match(said[2] ?? '', /taken\.example\.com.*c-1/)
  // A change of claims ends a transaction: the index has it before the next one is checked.
  assert.deepEqual(sizes, [2, 3, 1])
})

test('the first group of a store with clusters knows what they claim; so does a group that creates one', async (t) => {
  const { registry: earlier, patch: patchBefore } = registryOf(t)
  await patchBefore('c-0', { secureServing: { serverNames: ['taken.example.com'] } })
  const registry = new Registry({ ...PARTS, store: earlier.store })
  const sizes = counted(t, registry.store)
  const named = (name: string, serverName: string): Promise<JsonObject> => {
    const { spec, ...object } = cluster(name)
    const body = incoming({ ...object, spec: { ...Object(spec), secureServing: { serverNames: [serverName] } } })
    return registry.together(
      () => registry.create(UPSTREAM_CLUSTERS, '', body, { options: OPTIONS, warnings: [] }).object,
    )
  }
  const outcomes = await Promise.allSettled([
    named('d-1', 'taken.example.com'),
    named('d-2', 'new.example.com'),
    named('d-3', 'new.example.com'),
  ])
  const said = outcomes.map((one) => (one.status === 'fulfilled' ? 'written' : String(one.reason.message)))
  assert.match(said[0] ?? '', /taken\.example\.com.*c-0/)
  assert.equal(said[1], 'written')
  assert.match(said[2] ?? '', /new\.example\.com.*d-2/)
  assert.deepEqual(sizes, [2, 1])
})

test('over HTTP: who is revoked before the group of a patch begins does not write; a write that runs again warns once', async (t) => {
  const control = await startControl()
  const groups = ['portcullis:admins']
  const admin = new ControlClient(control, { cert: control.admin })
  const mallory = new ControlClient(control, {
    cert: issueControlCertificate(`${control.dir}/pki`, { user: 'mallory', groups }),
  })
  t.after(async () => {
    admin.close()
    mallory.close()
    await control.stop()
  })
  assert.equal((await admin.post(UC, cluster('c'))).code, 201)
  // The disk fails, and each write of the group runs again.
  const together = control.store.together.bind(control.store)
  const again = t.mock.method(control.store, 'together', <T>(tasks: Iterable<() => T>): readonly TaskResult<T>[] => {
    return together(Array.from(tasks, (task) => () => [task(), task()] as const).map((both) => () => both()[1]))
  })
  const warned = await admin.mergePatch(`${UC}/c?fieldValidation=Warn`, { spec: { wrong: 1 } })
  assert.deepEqual([warned.code, warned.headers['warning']], [200, '299 - "unknown field \\"spec.wrong\\""'])
  again.mock.restore()
  const add = control.registry.together.bind(control.registry)
  t.mock.method(control.registry, 'together', <T>(write: () => T): Promise<T> => {
    const revoked = incoming({
      apiVersion: 'portcullis.io/v1alpha1',
      kind: 'RevokedCredential',
      metadata: { name: 'mallory' },
      spec: { user: 'mallory' },
    })
    control.registry.create(REVOKED_CREDENTIALS, '', revoked, { options: OPTIONS, warnings: [] })
    return add(write)
  })
  const { code, text } = await mallory.mergePatch(`${UC}/c`, { spec: { degrade: { mode: 'Freeze', reason: 'x' } } })
  assert.equal(code, 401, text)
  assert.equal((await admin.get(`${UC}/c`)).json.spec.degrade, undefined)
})

test('over HTTP: patches that arrive together share transactions, a conflict is only its own, and the audit log has each', async (t) => {
  const control = await startControl()
  const admin = new ControlClient(control, { cert: control.admin })
  const session = h2Connect({ port: control.port, serverName: 'localhost', certificate: control.admin })
  t.after(async () => {
    session.destroy()
    admin.close()
    await control.stop()
  })
  for (let n = 0; n < 20; n++) assert.equal((await admin.post(UC, cluster(`c-${n}`))).code, 201)
  const sizes = counted(t, control.store)
  const burst = async (mode: string, wrong: number): Promise<number[]> => {
    const answers = Array.from({ length: 20 }, (_, n) => {
      const metadata = n === wrong ? { resourceVersion: '1' } : {}
      const body = JSON.stringify({ metadata, spec: { degrade: { mode, reason: 'INC-1' } } })
      const type = 'application/merge-patch+json'
      const head = [':method', 'PATCH', ':path', `${UC}/c-${n}`, 'content-type', type]
      return h2Request(session, head, Buffer.from(body))
    })
    return (await Promise.all(answers)).map(({ status }) => status)
  }
  // On a machine that is too busy each may have a turn of its own.
  for (let round = 0; !sizes.some((size) => size > 1); round++) {
    const before = control.audited.length
    const statuses = await burst(round % 2 === 0 ? 'Limited' : 'ReadOnly', 7)
    assert.deepEqual(
      statuses,
      Array.from({ length: 20 }, (_, n) => (n === 7 ? 409 : 200)),
    )
    const told = control.audited
      .slice(before)
      .filter(({ verb, stage }) => verb === 'patch' && stage === 'ResponseComplete')
    const degraded = told.filter(({ annotations }) => annotations['portcullis.io/degrade'] !== undefined)
    assert.deepEqual([told.length, degraded.length], [20, 19])
  }
  assert.deepEqual(control.errors, [])
})
