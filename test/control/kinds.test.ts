// What is particular about Secrets, Namespaces, Events and Leases, and the rest of the server: paths, callers, protocols.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openSqliteStore } from '../../src/apiserver/io/store/store.ts'
import { EventSweeper } from '../../src/apiserver/registry/events.ts'
import { createInProcessClient } from '../../src/apiserver/registry/in-process-client.ts'
import { UPSTREAM_CLUSTERS } from '../../src/gateway/api/upstream-cluster-kind.ts'
import { EVENTS } from '../../src/kube/api/kinds/event-kind.ts'
import { LEASES } from '../../src/kube/api/kinds/lease-kind.ts'
import { SECRETS } from '../../src/kube/api/kinds/secret-kind.ts'
import { StatusError } from '../../src/kube/api/status.ts'
import { issueControlToken } from '../../src/pki/io/control-tokens.ts'
import { ControlClient, cluster, type Json, PPR, secret, UC } from '../harness/clients/control-client.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'
import { waitFor } from '../harness/wait.ts'

const SECRET_PATH = '/api/v1/namespaces/default/secrets'
let control: TestControl
let client: ControlClient

before(async () => {
  control = await startControl()
  client = new ControlClient(control, { cert: control.admin })
})
after(async () => {
  client.close()
  await control.stop()
  assert.deepEqual(control.errors, [])
})

describe('Secrets', () => {
  test('stringData goes into data, the type is Opaque', async () => {
    const { json } = await client.post(
      SECRET_PATH,
      secret('a', { data: { x: 'eA==', y: 'eQ==' }, stringData: { y: 'new' } }),
    )
    assert.deepEqual(json.data, { x: 'eA==', y: 'bmV3' })
    assert.equal(json.stringData, undefined)
    assert.equal(json.type, 'Opaque')
  })

  test('data is base64', async () => {
    const { code, json } = await client.post(SECRET_PATH, secret('bad', { data: { x: 'a-b=' } }))
    assert.equal(code, 400)
    assert.equal(
      json.message,
      'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 1',
    )
  })

  test('with a wrong type: not decoded at all', async () => {
    const { code, json } = await client.post(SECRET_PATH, secret('bad', { data: { x: 1 } }))
    assert.equal(code, 400)
    assert.match(
      json.message,
      /cannot be handled as a Secret: json: cannot unmarshal number into Go struct field Secret\.data/,
    )
    assert.equal((await client.post(SECRET_PATH, secret('empty', { data: { x: '' } }))).code, 201)
  })

  test('in protobuf: invalid and truncated bodies', async () => {
    const contentType = 'application/vnd.kubernetes.protobuf'
    for (const body of ['{}', 'k8s\0', 'k8s\0\x0a\x7f', 'k8s\0\x0a\x08\x0a\x02v1\x12\x02No']) {
      const { code, json } = await client.call('POST', SECRET_PATH, { body, contentType })
      assert.equal(code, 400, JSON.stringify(body))
      assert.equal(json.reason, 'BadRequest')
    }
    // Custom kinds have no protobuf.
    assert.equal((await client.call('POST', UC, { body: 'k8s\0', contentType })).code, 415)
  })

  test('immutable Secrets stay, and the type always does', async () => {
    await client.post(SECRET_PATH, secret('fixed', { immutable: true, stringData: { a: 'b' } }))
    const changed = await client.mergePatch(`${SECRET_PATH}/fixed`, { stringData: { a: 'c' } })
    assert.equal(changed.code, 422)
    assert.match(changed.json.message, /data: .*field is immutable when `immutable` is set/)
    assert.equal((await client.mergePatch(`${SECRET_PATH}/fixed`, { metadata: { labels: { a: 'b' } } })).code, 200)
    await client.post(SECRET_PATH, secret('typed'))
    const typed = await client.mergePatch(`${SECRET_PATH}/typed`, { type: 'example.com/x' })
    assert.match(typed.json.message, /type: .*field is immutable/)
  })
})

describe('Namespaces', () => {
  const NS = '/api/v1/namespaces'
  const namespace = (name: string, metadata: object = {}): Json => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, ...metadata },
  })

  test('default and kube-system are there and stay', async () => {
    const { json } = await client.get(NS)
    assert.deepEqual(
      json.items.map(({ metadata }: Json) => metadata.name),
      ['default', 'kube-system'],
    )
    for (const name of ['default', 'kube-system']) {
      const refused = await client.delete(`${NS}/${name}`)
      assert.equal(refused.code, 403)
      assert.equal(refused.json.message, `namespaces "${name}" is forbidden: this namespace may not be deleted`)
    }
  })

  test('a new one is Active, and labelled with its name', async () => {
    const { json } = await client.post(NS, { ...namespace('green'), status: { phase: 'Terminating' } })
    assert.equal(json.status.phase, 'Active')
    assert.deepEqual(json.spec.finalizers, ['kubernetes'])
    assert.equal(json.metadata.labels['kubernetes.io/metadata.name'], 'green')
    const dotted = await client.post(NS, namespace('not.a.label'))
    assert.equal(dotted.code, 422)
    assert.equal((await client.delete(`${NS}/green`)).code, 200)
  })

  test('is deleted with all its contents', async () => {
    await client.post(NS, namespace('full'))
    await client.post(`${NS}/full/secrets`, secret('a'))
    const protector = {
      apiVersion: 'podseidon.kubewharf.io/v1alpha1',
      kind: 'PodProtector',
      metadata: { name: 'p' },
      spec: { minAvailable: 1, minReadySeconds: 0, selector: { matchLabels: { a: 'b' } } },
    }
    assert.equal((await client.post(`${PPR}/namespaces/full/podprotectors`, protector)).code, 201)
    const gone = await client.delete(`${NS}/full`)
    assert.equal(gone.json.status, 'Success')
    assert.equal((await client.get(`${NS}/full`)).code, 404)
    assert.equal((await client.get(`${NS}/full/secrets/a`)).code, 404)
    assert.equal((await client.get(`${PPR}/namespaces/full/podprotectors/p`)).code, 404)
  })

  test('waits for objects with finalizers, takes nothing new, and is removed with the last', async () => {
    await client.post(NS, namespace('slow'))
    await client.post(`${NS}/slow/secrets`, secret('held', {}, { finalizers: ['x.example.com/hold'] }))
    await client.post(`${NS}/slow/secrets`, secret('free'))
    const waiting = await client.delete(`${NS}/slow`)
    assert.equal(waiting.json.status.phase, 'Terminating')
    assert.equal((await client.get(`${NS}/slow/secrets/free`)).code, 404)
    assert.match((await client.get(`${NS}/slow/secrets/held`)).json.metadata.deletionTimestamp, /Z$/)
    const late = await client.post(`${NS}/slow/secrets`, secret('late'))
    assert.equal(late.code, 403)
    assert.match(late.json.message, /unable to create new content in namespace slow because it is being terminated/)
    assert.equal(late.json.details.causes[0].reason, 'NamespaceTerminating')
    await client.mergePatch(`${NS}/slow/secrets/held`, { metadata: { finalizers: null } })
    assert.equal((await client.get(`${NS}/slow`)).code, 404)
  })
})

test('Leases are plain objects: one of two candidates wins', async () => {
  const path = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases'
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'leader' } }
  const { json, code } = await client.post(path, {
    ...lease,
    spec: { holderIdentity: 'a', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.000000Z' },
  })
  assert.equal(code, 201)
  const results = await Promise.all(
    ['b', 'c'].map((holderIdentity) =>
      client.put(`${path}/leader`, { ...json, spec: { ...json.spec, holderIdentity } }),
    ),
  )
  assert.deepEqual(results.map((result) => result.code).sort(), [200, 409])
})

test('Events end after an hour, and there are only so many', () => {
  const store = openSqliteStore({ file: ':memory:', key: undefined })
  try {
    const start = Date.parse('2026-01-01T00:00:00Z')
    const write = (name: string, atMs: number): void => {
      const lastTimestamp = new Date(atMs).toISOString()
      const object = { apiVersion: 'v1', kind: 'Event', metadata: { name, namespace: 'default' }, lastTimestamp }
      store.write([{ resource: 'events', namespace: 'default', name, object, expected: 0 }])
    }
    const names = (): string[] => store.list('events', { namespace: '' }).map(({ name }) => name)
    const sweeper = new EventSweeper(store, 3)
    write('old', start)
    write('young', start + 50 * 60_000)
    sweeper.sweep(start + 59 * 60_000)
    assert.deepEqual(names(), ['old', 'young'])
    sweeper.sweep(start + 61 * 60_000)
    assert.deepEqual(names(), ['young'])
    for (const name of ['a', 'b', 'c']) {
      write(name, start + 61 * 60_000)
      sweeper.onWrite(start + 61 * 60_000)
    }
    assert.deepEqual(names(), ['a', 'b', 'c'])
  } finally {
    store.close()
  }
  assert.equal(EVENTS.plural, 'events')
})

describe('paths', () => {
  test('unknown ones are 404 in plain text', async () => {
    for (const path of ['/', '/nothing', '/apis/x.example.com/v1/things', `${UC}/a/scale`, `${UC}/a/b/c`, `/${UC}`]) {
      const { code, text, headers } = await client.get(path)
      assert.equal(code, 404, path)
      assert.equal(text, '404 page not found\n')
      assert.match(String(headers['content-type']), /^text\/plain/)
    }
  })

  test('unknown ones are 404 whatever the body, which is not decoded', async () => {
    const contentType = 'application/vnd.kubernetes.protobuf'
    const { code } = await client.call('POST', '/apis/autoscaling/v1/namespaces/a/things', { body: '{}', contentType })
    assert.equal(code, 404)
  })

  test('methods that a path does not take are 405', async () => {
    for (const [method, path] of [
      ['POST', `${UC}/a`],
      ['PATCH', UC],
      ['PUT', UC],
      ['DELETE', `${UC}/a/status`],
      ['POST', '/api/v1/secrets'],
      ['DELETE', '/api/v1/secrets'],
    ] as const) {
      const { code, json } = await client.call(method, path, { body: {} })
      assert.equal(code, 405, `${method} ${path}`)
      assert.equal(json.reason, 'MethodNotAllowed')
      assert.match(json.message, / is not supported on resources of kind "/)
    }
  })

  test('health, and the version', async () => {
    for (const path of ['/healthz', '/livez', '/readyz']) {
      const { code, text } = await client.get(path)
      assert.equal(code, 200)
      assert.equal(text, 'ok')
      assert.equal((await client.get(`${path}/ping`)).text, 'ok')
      assert.equal((await client.get(`${path}?verbose`)).text, `[+]ping ok\n${path.slice(1)} check passed\n`)
    }
    assert.equal((await client.get('/readyz/none')).code, 404)
    assert.equal((await client.get('/version')).json.major, '1')
  })

  test('every answer has an Audit-ID and a Date', async () => {
    const own = await client.get(UC, { 'audit-id': 'mine' })
    assert.equal(own.headers['audit-id'], 'mine')
    const { headers } = await client.get('/nothing')
    assert.match(String(headers['audit-id']), /^[0-9a-f-]{36}$/)
    assert.match(String(headers['date']), /GMT$/)
  })
})

describe('callers', () => {
  test('anonymous: health only', async () => {
    const anonymous = new ControlClient(control)
    assert.equal((await anonymous.get('/readyz')).code, 200)
    const { code, json } = await anonymous.get(UC)
    assert.equal(code, 403)
    assert.equal(json.reason, 'Forbidden')
    assert.equal(
      json.message,
      'upstreamclusters.proxy.kubegateway.io is forbidden: User "system:anonymous" cannot list resource "upstreamclusters" in API group "proxy.kubegateway.io" at the cluster scope',
    )
    assert.equal(
      (await anonymous.get('/nothing')).json.message,
      'forbidden: User "system:anonymous" cannot get path "/nothing"',
    )
    anonymous.close()
  })

  test('a wrong token is 401, and a valid one is authenticated', async () => {
    const wrong = new ControlClient(control, { token: 'nonsense' })
    const { code, json } = await wrong.get('/readyz')
    assert.equal(code, 401)
    assert.equal(json.message, 'Unauthorized')
    wrong.close()
    const token = issueControlToken(control.tokenKey, {
      user: 'carol',
      groups: ['portcullis:viewers'],
      nowMs: Date.now(),
      ttlSeconds: 60,
    })
    const carol = new ControlClient(control, { token })
    assert.equal((await carol.get(UC)).code, 200)
    assert.equal((await carol.post(UC, cluster('x'))).code, 403)
    assert.equal((await carol.get(SECRET_PATH)).code, 403)
    carol.close()
  })

  test('a refused upload is answered before it is complete', async () => {
    const anonymous = new ControlClient(control)
    const { code } = await anonymous.call('POST', UC, { body: 'x'.repeat(8 * 1024 * 1024) })
    assert.equal(code, 403)
    anonymous.close()
  })
})

test('HTTP/2: the same answers, bodies in many frames, many at once', async () => {
  const session = h2Connect({ port: control.port, certificate: control.admin })
  try {
    const head = (method: string, path: string): string[] => [
      ':method',
      method,
      ':path',
      path,
      'content-type',
      'application/json',
    ]
    const big = secret('frames', { stringData: { text: 'y'.repeat(700_000) } })
    const made = await h2Request(session, head('POST', SECRET_PATH), Buffer.from(JSON.stringify(big)))
    assert.equal(made.status, 201)
    const many = await Promise.all(
      Array.from({ length: 20 }, () => h2Request(session, head('GET', `${SECRET_PATH}/frames`))),
    )
    for (const { status, body } of many) {
      assert.equal(status, 200)
      assert.equal(JSON.parse(body.toString()).data.text.length, 933_336)
    }
  } finally {
    session.destroy()
  }
})

describe('in-process client', () => {
  test('creates, reads, updates, patches, deletes; errors are StatusErrors', async () => {
    const own = createInProcessClient(control.registry)
    const made = await own.create(UPSTREAM_CLUSTERS, cluster('own'))
    const { metadata } = made as Json
    assert.equal(metadata.managedFields[0].manager, 'portcullis')
    const updated = await own.update(
      UPSTREAM_CLUSTERS,
      { ...made, status: { endpoints: { ready: 1, total: 1 } } },
      'status',
    )
    assert.deepEqual((updated as Json).status.endpoints, { ready: 1, total: 1 })
    await assert.rejects(
      own.update(UPSTREAM_CLUSTERS, { ...made, spec: cluster('own', { default: true }).spec }),
      (error) => {
        return error instanceof StatusError && error.code === 409
      },
    )
    const body = { spec: { default: true } }
    const at = { namespace: '', name: 'own' }
    const patched = await own.patch(UPSTREAM_CLUSTERS, at, 'application/merge-patch+json', body, {
      fieldManager: 'test',
    })
    assert.equal((patched as Json).spec.default, true)
    assert.equal((await own.list(UPSTREAM_CLUSTERS, '', 'none')).items.length, 0)
    assert.deepEqual(await own.get(UPSTREAM_CLUSTERS, at), patched)
    await own.delete(UPSTREAM_CLUSTERS, at)
    await assert.rejects(own.get(UPSTREAM_CLUSTERS, at), (error) => error instanceof StatusError && error.code === 404)
  })

  test('follows: all at once, then every change', async () => {
    const own = createInProcessClient(control.registry)
    const received: string[] = []
    const following = own.follow(LEASES, '', {
      onReplace: (objects) => void received.push(`replace ${objects.length}`),
      onChange: (type, object) => void received.push(`${type} ${String((object as Json).metadata.name)}`),
      onState: (current, message) => void received.push(`state ${current} ${message}`),
    })
    await waitFor('the first state', () => received.length === 2)
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'f', namespace: 'default' } }
    await own.create(LEASES, lease)
    await own.delete(LEASES, { namespace: 'default', name: 'f' })
    await following.stop()
    await own.create(LEASES, lease)
    assert.deepEqual(received.slice(1), ['state true ', 'ADDED f', 'DELETED f'])
    assert.match(received[0] ?? '', /^replace \d$/)
    assert.equal(SECRETS.plural, 'secrets')
  })
})
