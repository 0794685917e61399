// Reading and writing objects of the embedded API server, over HTTPS: what kube-apiserver answers is what it answers.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import {
  ControlClient,
  type ControlResponse,
  cluster,
  type Json,
  secret,
  UC,
} from '../harness/clients/control-client.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'

const SECRETS = '/api/v1/namespaces/default/secrets'
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
beforeEach(async () => {
  await client.delete(UC)
  await client.delete(SECRETS)
})

function assertStatus(response: ControlResponse, code: number, reason: string, message: RegExp | string): void {
  const { json } = response
  assert.equal(response.code, code, response.text)
  assert.equal(json.kind, 'Status')
  assert.equal(json.apiVersion, 'v1')
  assert.equal(json.status, 'Failure')
  assert.equal(json.code, code)
  assert.equal(json.reason ?? '', reason)
  if (typeof message === 'string') assert.equal(json.message, message)
  else assert.match(json.message, message)
}

async function created(object: Json, path: string = UC): Promise<Json> {
  const response = await client.post(path, object)
  assert.equal(response.code, 201, response.text)
  return response.json
}

describe('who may not', () => {
  test('has no body read: the answer comes before it, whatever it is', async () => {
    const stranger = new ControlClient(control)
    const viewer = new ControlClient(control, { cert: control.viewer })
    const body = '}'.repeat(64 * 1024)
    for (const [caller, code] of [
      [stranger, 403],
      [viewer, 403],
    ] as const) {
      for (const [method, path] of [
        ['DELETE', `${UC}/a`],
        ['POST', UC],
        ['PUT', `${UC}/a`],
        ['PATCH', `${UC}/a`],
        ['DELETE', '/nowhere'],
      ] as const) {
        const response = await caller.call(method, path, { body, contentType: 'application/yaml' })
        assert.equal(response.code, code, `${method} ${path}: ${response.text}`)
      }
      caller.close()
    }
  })
})

describe('create', () => {
  test('the server sets its own fields, and ignores those of the client', async () => {
    const object = await created(
      cluster('a', {}, { uid: 'mine', creationTimestamp: '2001-01-01T00:00:00Z', generation: 7, selfLink: '/x' }),
    )
    const { metadata } = object
    assert.match(metadata.uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4/)
    assert.notEqual(metadata.creationTimestamp, '2001-01-01T00:00:00Z')
    assert.match(metadata.creationTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    assert.equal(metadata.generation, 1)
    assert.equal(metadata.selfLink, undefined)
    assert.match(metadata.resourceVersion, /^[1-9][0-9]*$/)
    assert.equal(metadata.managedFields[0].operation, 'Update')
    assert.deepEqual((await client.get(`${UC}/a`)).json, object)
  })

  test('status is dropped, where it is a subresource', async () => {
    const object = await created({ ...cluster('a'), status: { endpoints: { ready: 1, total: 1 } } })
    assert.equal(object.status, undefined)
  })

  test('generateName makes names that are free', async () => {
    const { spec } = cluster('x')
    const names = new Set<string>()
    for (let i = 0; i < 3; i++) {
      const object = { apiVersion: 'v1', kind: 'Secret', metadata: { generateName: 'gen-' }, spec }
      const { json } = await client.post(SECRETS, object)
      assert.match(json.metadata.name, /^gen-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
      assert.equal(json.metadata.generateName, 'gen-')
      names.add(json.metadata.name)
    }
    assert.equal(names.size, 3)
  })

  test('a name that is taken, no name, a wrong name', async () => {
    await created(cluster('a'))
    const taken = await client.post(UC, cluster('a'))
    assertStatus(taken, 409, 'AlreadyExists', 'upstreamclusters.proxy.kubegateway.io "a" already exists')
    assert.deepEqual(taken.json.details, { name: 'a', group: 'proxy.kubegateway.io', kind: 'upstreamclusters' })
    const nameless = { ...cluster('x'), metadata: {} }
    assertStatus(await client.post(UC, nameless), 422, 'Invalid', /name or generateName is required/)
    assertStatus(await client.post(UC, cluster('A_b')), 422, 'Invalid', /metadata\.name: Invalid value: "A_b"/)
  })

  test('a resourceVersion is refused as in a kube-apiserver', async () => {
    const response = await client.post(UC, cluster('a', {}, { resourceVersion: '5' }))
    assertStatus(response, 500, '', 'resourceVersion should not be set on objects to be created')
  })

  test('a dry run stores nothing', async () => {
    const response = await client.post(`${UC}?dryRun=All`, cluster('dry'))
    assert.equal(response.code, 201)
    assert.match(response.json.metadata.uid, /-/)
    assert.equal((await client.get(`${UC}/dry`)).code, 404)
    const wrong = await client.post(`${UC}?dryRun=Some`, cluster('dry'))
    assertStatus(wrong, 422, 'Invalid', /^CreateOptions\.meta\.k8s\.io "" is invalid: dryRun: Unsupported value/)
  })

  test('a namespace that is not there, and one that does not match', async () => {
    const missing = await client.post('/api/v1/namespaces/nowhere/secrets', secret('a'))
    assertStatus(missing, 404, 'NotFound', 'namespaces "nowhere" not found')
    const other = await client.post(SECRETS, secret('a', {}, { namespace: 'kube-system' }))
    const message = 'the namespace of the provided object does not match the namespace sent on the request'
    assertStatus(other, 400, 'BadRequest', message)
  })

  test('YAML in, YAML out', async () => {
    const body = 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: yaml\nstringData:\n  answer: "yes"\n'
    const response = await client.call('POST', SECRETS, {
      body,
      contentType: 'application/yaml',
      headers: { accept: 'application/yaml' },
    })
    assert.equal(response.code, 201, response.text)
    assert.equal(response.headers['content-type'], 'application/yaml')
    assert.match(response.text, /^kind: Secret$/m)
    assert.match(response.text, /^ {2}answer: eWVz$/m)
  })
})

describe('bodies that cannot be taken', () => {
  const table: [what: string, body: string, contentType: string, code: number, reason: string, message: RegExp][] = [
    [
      'broken JSON',
      '{"kind":',
      'application/json',
      400,
      'BadRequest',
      /^the object provided is unrecognized \(must be of type UpstreamCluster\): couldn't get version\/kind; json parse error: unexpected end of JSON input \(\{"kind":\)$/,
    ],
    ['a list', '[]', 'application/json', 400, 'BadRequest', /json parse error: json: cannot unmarshal array/],
    ['null', 'null', 'application/json', 400, 'BadRequest', /must be of type UpstreamCluster/],
    ['nothing', '', 'application/json', 400, 'BadRequest', /<empty>/],
    [
      'no kind',
      '{"apiVersion":"proxy.kubegateway.io/v1alpha1"}',
      'application/json',
      400,
      'BadRequest',
      /Object 'Kind' is missing in/,
    ],
    [
      'another version',
      '{"apiVersion":"proxy.kubegateway.io/v9","kind":"UpstreamCluster"}',
      'application/json',
      400,
      'BadRequest',
      /^the API version in the data \(proxy\.kubegateway\.io\/v9\) does not match the expected API version \(proxy\.kubegateway\.io\/v1alpha1\)$/,
    ],
    [
      'another kind',
      JSON.stringify({ ...cluster('a'), kind: 'Other' }),
      'application/json',
      422,
      'Invalid',
      /kind: Invalid value: "Other": must be UpstreamCluster/,
    ],
    [
      'another type',
      '<a/>',
      'text/xml',
      415,
      'UnsupportedMediaType',
      /^the body of the request was in an unknown format - accepted media types include: /,
    ],
    [
      'a wrong type in metadata',
      '{"apiVersion":"proxy.kubegateway.io/v1alpha1","kind":"UpstreamCluster","metadata":{"name":"a","labels":{"a":1}}}',
      'application/json',
      400,
      'BadRequest',
      /cannot unmarshal number into Go struct field ObjectMeta\.metadata\.labels of type string|cannot unmarshal number into Go struct field ObjectMeta\.labels/,
    ],
  ]
  for (const [what, body, contentType, code, reason, message] of table) {
    test(what, async () => {
      const response = await client.call('POST', UC, { body, contentType })
      assertStatus(response, code, reason, message)
    })
  }

  test('more than 3 MiB', async () => {
    const body = `{"metadata":{"name":"${'x'.repeat(3 * 1024 * 1024)}"}}`
    const response = await client.call('POST', UC, { body })
    assertStatus(response, 413, 'RequestEntityTooLarge', 'Request entity too large: limit is 3145728')
  })

  test('options of a deletion, and a question about oneself, above 16 KiB', async () => {
    const filler = 'x'.repeat(16 * 1024)
    const message = 'Request entity too large: limit is 16384'
    const REVIEWS = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    for (const [method, path] of [
      ['DELETE', `${UC}/a`],
      ['DELETE', UC],
      ['POST', REVIEWS],
    ] as const) {
      const response = await client.call(method, path, { body: { filler } })
      assertStatus(response, 413, 'RequestEntityTooLarge', message)
    }
    assert.equal((await client.call('POST', REVIEWS, { body: { filler: filler.slice(0, 16_000) } })).code, 201)
  })

  test('the same in YAML that is not JSON, above 1 KiB: JSON is the way', async () => {
    const message =
      'Request entity too large: limit is 1024 characters for YAML that is not JSON; send JSON, which may have 16384 bytes'
    const body = `a:\n  ${'['.repeat(1024)}`
    const contentType = 'application/yaml'
    const REVIEWS = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    for (const [method, path] of [
      ['DELETE', `${UC}/a`],
      ['DELETE', UC],
      ['POST', REVIEWS],
    ] as const) {
      const response = await client.call(method, path, { body, contentType })
      assertStatus(response, 413, 'RequestEntityTooLarge', message)
    }
    for (const small of [`filler: ${'x'.repeat(1000)}`, `{"filler":"${'x'.repeat(16_000)}"}`]) {
      assert.equal((await client.call('POST', REVIEWS, { body: small, contentType })).code, 201)
    }
  })

  test('all errors of an object at once', async () => {
    const bad = cluster('a', { servers: [{ endpoint: 'ftp://x' }], secureServing: { serverNames: ['not a name'] } })
    const { json, code } = await client.post(UC, bad)
    assert.equal(code, 422)
    const fields = json.details.causes.map(({ field }: Json) => field)
    assert.ok(fields.includes('spec.servers[0].endpoint'), String(fields))
    assert.ok(fields.includes('spec.secureServing.serverNames[0]'), String(fields))
    assert.equal(json.details.kind, 'UpstreamCluster')
  })

  test('a host name that another cluster has', async () => {
    await created(cluster('a', { secureServing: { serverNames: ['shared.example.com'] } }))
    const response = await client.post(UC, cluster('b', { secureServing: { serverNames: ['shared.example.com'] } }))
    assertStatus(response, 422, 'Invalid', /spec\.secureServing\.serverNames\[0\].*belongs to UpstreamCluster "a"/)
    // What has gone claims nothing.
    await client.delete(`${UC}/a`)
    await created(cluster('b', { secureServing: { serverNames: ['shared.example.com'] } }))
  })

  test('prototypes are names like any other', async () => {
    const body =
      '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"proto","labels":{"__proto__":"x"}},"data":{"constructor":"YQ=="}}'
    await client.call('POST', SECRETS, { body })
    assert.equal(({} as { x?: unknown }).x, undefined)
    const { json } = await client.get(`${SECRETS}/proto`)
    assert.ok(json.code === 404 || json.data.constructor === 'YQ==')
  })
})

describe('field validation', () => {
  const unknown = cluster('a', { wrong: 1 })
  const message = 'strict decoding error: unknown field "spec.wrong"'

  test('Strict refuses, Warn warns, Ignore is silent; what is unknown is pruned', async () => {
    const strict = await client.post(`${UC}?fieldValidation=Strict`, unknown)
    assertStatus(
      strict,
      400,
      'BadRequest',
      `UpstreamCluster in version "v1alpha1" cannot be handled as a UpstreamCluster: ${message}`,
    )
    const warned = await client.post(UC, unknown)
    assert.equal(warned.code, 201)
    assert.equal(warned.json.spec.wrong, undefined)
    assert.equal(warned.headers['warning'], '299 - "unknown field \\"spec.wrong\\""')
    await client.delete(`${UC}/a`)
    const ignored = await client.post(`${UC}?fieldValidation=Ignore`, unknown)
    assert.equal(ignored.code, 201)
    assert.equal(ignored.headers['warning'], undefined)
    const odd = await client.post(`${UC}?fieldValidation=Maybe`, unknown)
    assertStatus(
      odd,
      422,
      'Invalid',
      /fieldValidation: Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn"/,
    )
  })

  test('fields given twice', async () => {
    const body = `{"apiVersion":"proxy.kubegateway.io/v1alpha1","kind":"UpstreamCluster","metadata":{"name":"a","name":"a"},"spec":{}}`
    const response = await client.call('POST', `${UC}?fieldValidation=Strict`, { body })
    assertStatus(response, 400, 'BadRequest', /strict decoding error: duplicate field "metadata\.name"/)
  })

  test('for the result of a patch', async () => {
    await created(cluster('a'))
    const strict = await client.mergePatch(`${UC}/a?fieldValidation=Strict`, { spec: { wrong: 1 } })
    assertStatus(
      strict,
      422,
      'Invalid',
      /^ "" is invalid: patch: Invalid value: ".*": strict decoding error: unknown field "spec\.wrong"$/,
    )
  })
})

describe('update', () => {
  test('needs the version that was seen', async () => {
    const object = await created(cluster('a'))
    const { resourceVersion: _, ...unversioned } = object.metadata
    const without = await client.put(`${UC}/a`, { ...object, metadata: unversioned })
    assertStatus(
      without,
      422,
      'Invalid',
      /metadata\.resourceVersion: Invalid value: 0: must be specified for an update$/,
    )
    const changed = await client.put(`${UC}/a`, cluster('a', { default: true }, object.metadata))
    assert.equal(changed.code, 200, changed.text)
    assert.equal(changed.json.metadata.generation, 2)
    const stale = await client.put(`${UC}/a`, object)
    assertStatus(
      stale,
      409,
      'Conflict',
      'Operation cannot be fulfilled on upstreamclusters.proxy.kubegateway.io "a": the object has been modified; please apply your changes to the latest version and try again',
    )
    // Secrets may be written blindly, as in a real cluster.
    await created(secret('s'), SECRETS)
    assert.equal((await client.put(`${SECRETS}/s`, secret('s', { stringData: { a: 'b' } }))).code, 200)
  })

  test('keeps what only the server sets; a no-op changes nothing', async () => {
    const object = await created(cluster('a'))
    const meddled = {
      ...object,
      metadata: { ...object.metadata, creationTimestamp: '2001-01-01T00:00:00Z', generation: 9 },
    }
    const same = await client.put(`${UC}/a`, meddled)
    assert.equal(same.code, 200)
    assert.deepEqual(same.json, object)
    const labelled = await client.put(`${UC}/a`, { ...object, metadata: { ...object.metadata, labels: { a: 'b' } } })
    assert.equal(labelled.json.metadata.generation, 1)
    assert.notEqual(labelled.json.metadata.resourceVersion, object.metadata.resourceVersion)
  })

  test('another name, another uid, and what is not there', async () => {
    const object = await created(cluster('a'))
    const renamed = await client.put(`${UC}/a`, cluster('b'))
    assertStatus(renamed, 400, 'BadRequest', 'the name of the object (b) does not match the name on the URL (a)')
    const stranger = await client.put(`${UC}/a`, { ...object, metadata: { ...object.metadata, uid: 'other' } })
    assertStatus(stranger, 409, 'Conflict', /Precondition failed: UID in precondition: other, UID in object meta: /)
    assertStatus(await client.put(`${UC}/none`, cluster('none')), 404, 'NotFound', /"none" not found$/)
  })

  test('status has an endpoint of its own', async () => {
    const object = await created(cluster('a'))
    const status = { endpoints: { ready: 1, total: 2 } }
    const byMain = await client.put(`${UC}/a`, { ...object, status })
    assert.equal(byMain.json.status, undefined)
    const bySub = await client.put(`${UC}/a/status`, {
      ...object,
      spec: cluster('a', { default: true }).spec,
      metadata: { ...object.metadata, labels: { a: 'b' } },
      status,
    })
    assert.equal(bySub.code, 200, bySub.text)
    assert.deepEqual(bySub.json.status, status)
    assert.deepEqual(bySub.json.spec, object.spec)
    assert.equal(bySub.json.metadata.labels, undefined)
    assert.equal(bySub.json.metadata.generation, 1)
    const entry = bySub.json.metadata.managedFields.find((row: Json) => row.subresource === 'status')
    assert.equal(entry.operation, 'Update')
    const patched = await client.mergePatch(`${UC}/a/status`, { status: { endpoints: { ready: 2, total: 2 } } })
    assert.equal(patched.json.status.endpoints.ready, 2)
    const kept = await client.mergePatch(`${UC}/a`, { metadata: { labels: { c: 'd' } }, status: null })
    assert.equal(kept.json.status.endpoints.ready, 2)
  })

  test('owner references are stored once each', async () => {
    const owner = { apiVersion: 'v1', kind: 'Secret', name: 'o', uid: '1' }
    const response = await client.post(UC, cluster('a', {}, { ownerReferences: [owner, { ...owner }] }))
    assert.equal(response.json.metadata.ownerReferences.length, 1)
    assert.match(String(response.headers['warning']), /contains duplicate entries/)
  })
})

describe('patch', () => {
  test('merge and JSON', async () => {
    await created(cluster('a'))
    const merged = await client.mergePatch(`${UC}/a`, { spec: { default: true } })
    assert.equal(merged.code, 200, merged.text)
    assert.equal(merged.json.spec.default, true)
    assert.equal(merged.json.metadata.generation, 2)
    const body = [
      { op: 'test', path: '/spec/default', value: true },
      { op: 'remove', path: '/spec/default' },
    ]
    const contentType = 'application/json-patch+json'
    const json = await client.call('PATCH', `${UC}/a`, { body, contentType })
    assert.equal(json.json.spec.default, undefined)
    const failed = await client.call('PATCH', `${UC}/a`, { body, contentType })
    assert.equal(failed.code, 422, failed.text)
  })

  test('a version in the patch is a condition; its name cannot change', async () => {
    await created(cluster('a'))
    const stale = await client.mergePatch(`${UC}/a`, { metadata: { resourceVersion: '1' } })
    assertStatus(stale, 409, 'Conflict', /the object has been modified/)
    const renamed = await client.mergePatch(`${UC}/a`, { metadata: { name: 'b' } })
    assertStatus(renamed, 400, 'BadRequest', 'the name of the object (b) does not match the name on the URL (a)')
    const uid = await client.mergePatch(`${UC}/a`, { metadata: { uid: 'x' } })
    assertStatus(uid, 422, 'Invalid', /metadata\.uid: Invalid value: "x": field is immutable/)
    assertStatus(await client.mergePatch(`${UC}/none`, {}), 404, 'NotFound', /"none" not found/)
  })

  test('strategic only where clients know the kind', async () => {
    await created(cluster('a'))
    const contentType = 'application/strategic-merge-patch+json'
    const custom = await client.call('PATCH', `${UC}/a`, { body: {}, contentType })
    assertStatus(
      custom,
      415,
      'UnsupportedMediaType',
      /accepted media types include: application\/json-patch\+json, application\/merge-patch\+json, application\/apply-patch\+yaml$/,
    )
    await created(secret('s', {}, { finalizers: ['a.example.com/x'] }), SECRETS)
    for (const $patch of [{ toString: null }, 'x']) {
      const told = typeof $patch === 'string' ? $patch : JSON.stringify($patch)
      const unknown = await client.call('PATCH', `${SECRETS}/s`, { body: { $patch }, contentType })
      assertStatus(unknown, 400, 'BadRequest', `unknown patch type: ${told}`)
    }
    const body = { metadata: { finalizers: ['b.example.com/y'] }, stringData: { k: 'v' } }
    const merged = await client.call('PATCH', `${SECRETS}/s`, { body, contentType })
    assert.deepEqual(merged.json.metadata.finalizers, ['a.example.com/x', 'b.example.com/y'])
    const drop = { metadata: { '$deleteFromPrimitiveList/finalizers': ['a.example.com/x', 'b.example.com/y'] } }
    const dropped = await client.call('PATCH', `${SECRETS}/s`, { body: drop, contentType })
    assert.equal(dropped.json.metadata.finalizers, undefined, dropped.text)
    assert.deepEqual(dropped.json.data, { k: 'dg==' })
  })

  test('a broken patch', async () => {
    await created(cluster('a'))
    const contentType = 'application/merge-patch+json'
    const broken = await client.call('PATCH', `${UC}/a`, { body: '{', contentType })
    assertStatus(broken, 400, 'BadRequest', 'error decoding patch: unexpected end of JSON input')
    const forced = await client.mergePatch(`${UC}/a?force=true`, {})
    assertStatus(forced, 422, 'Invalid', /force: Forbidden: may not be specified for non-apply patch/)
  })

  test('apply creates, owns fields, conflicts and takes over', async () => {
    const first = await client.apply(`${UC}/a?fieldManager=one`, cluster('a'))
    assert.equal(first.code, 201, first.text)
    const again = await client.apply(`${UC}/a?fieldManager=one`, cluster('a'))
    assert.equal(again.code, 200)
    assert.equal(again.json.metadata.resourceVersion, first.json.metadata.resourceVersion)
    const other = cluster('a', { servers: [{ endpoint: 'https://10.0.0.9:6443' }] })
    const conflict = await client.apply(`${UC}/a?fieldManager=two`, other)
    assertStatus(conflict, 409, 'Conflict', 'Apply failed with 1 conflict: conflict with "one": .spec.servers')
    assert.deepEqual(conflict.json.details.causes, [
      { reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.spec.servers' },
    ])
    const forced = await client.apply(`${UC}/a?fieldManager=two&force=true`, other)
    assert.equal(forced.code, 200, forced.text)
    assert.equal(forced.json.spec.servers[0].endpoint, 'https://10.0.0.9:6443')
  })

  test('apply with a type that is not a string', async () => {
    for (const type of [{ toString: null }, ['x'], 7]) {
      const answer = await client.apply(`${UC}/a?fieldManager=one`, { ...cluster('a'), apiVersion: type, kind: type })
      const told = JSON.stringify(type)
      assertStatus(answer, 400, 'BadRequest', `invalid object type: /${told}, Kind=${told}`)
    }
  })

  test('apply needs a manager, and refuses managedFields and unknown fields', async () => {
    assertStatus(
      await client.apply(`${UC}/a`, cluster('a')),
      422,
      'Invalid',
      /fieldManager: Required value: is required for apply patch/,
    )
    const managed = cluster('a', {}, { managedFields: [{ manager: 'x' }] })
    assertStatus(
      await client.apply(`${UC}/a?fieldManager=one`, managed),
      400,
      'BadRequest',
      'metadata.managedFields must be nil',
    )
    const unknown = await client.apply(`${UC}/a?fieldManager=one`, cluster('a', { wrong: 1 }))
    assertStatus(
      unknown,
      500,
      '',
      /failed to create typed patch object .*: \.spec\.wrong: field not declared in schema/,
    )
  })
})

describe('delete', () => {
  test('returns what was deleted; a dry run does nothing', async () => {
    const { metadata } = await created(cluster('a'))
    assert.equal((await client.delete(`${UC}/a?dryRun=All`)).code, 200)
    assert.equal((await client.delete(`${UC}/a`, { dryRun: ['All'] })).code, 200)
    const { json, code } = await client.delete(`${UC}/a`, {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      propagationPolicy: 'Foreground',
    })
    assert.equal(code, 200)
    const details = { name: 'a', group: 'proxy.kubegateway.io', kind: 'upstreamclusters', uid: metadata.uid }
    assert.deepEqual(json, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details })
    assertStatus(await client.delete(`${UC}/a`), 404, 'NotFound', 'upstreamclusters.proxy.kubegateway.io "a" not found')
  })

  test('preconditions', async () => {
    const { metadata } = await created(cluster('a'))
    const uid = await client.delete(`${UC}/a`, { preconditions: { uid: 'x' } })
    assertStatus(uid, 409, 'Conflict', /the UID in the precondition \(x\) does not match the UID in record/)
    const version = await client.delete(`${UC}/a`, { preconditions: { resourceVersion: '1' } })
    assertStatus(version, 409, 'Conflict', /the ResourceVersion in the precondition \(1\) does not match/)
    const { uid: ownUid, resourceVersion } = metadata
    assert.equal((await client.delete(`${UC}/a`, { preconditions: { uid: ownUid, resourceVersion } })).code, 200)
  })

  test('options that cannot be', async () => {
    await created(cluster('a'))
    const both = await client.delete(`${UC}/a`, { orphanDependents: true, propagationPolicy: 'Orphan' })
    assertStatus(both, 422, 'Invalid', /orphanDependents and deletionPropagation cannot be both set/)
    assertStatus(
      await client.delete(`${UC}/a?propagationPolicy=Now`),
      422,
      'Invalid',
      /propagationPolicy: Unsupported value: "Now"/,
    )
    assertStatus(await client.delete(`${UC}/a`, { dryRun: 1 }), 400, 'BadRequest', /cannot unmarshal number/)
    assertStatus(await client.delete(`${UC}/a`, { kind: 'Pod' }), 400, 'BadRequest', /no kind "Pod"/)
  })

  test('finalizers delay it until the last is removed', async () => {
    await created(cluster('a', {}, { finalizers: ['x.example.com/a', 'x.example.com/b'] }))
    const marked = await client.delete(`${UC}/a`)
    assert.equal(marked.code, 200)
    assert.match(marked.json.metadata.deletionTimestamp, /Z$/)
    assert.equal(marked.json.metadata.deletionGracePeriodSeconds, 0)
    assert.equal(marked.json.metadata.generation, 2)
    const again = await client.delete(`${UC}/a`)
    assert.equal(again.json.metadata.resourceVersion, marked.json.metadata.resourceVersion)
    const added = await client.mergePatch(`${UC}/a`, {
      metadata: { finalizers: ['x.example.com/a', 'new.example.com/c'] },
    })
    assertStatus(
      added,
      422,
      'Invalid',
      /metadata\.finalizers: Forbidden: no new finalizers can be added if the object is being deleted/,
    )
    const fewer = await client.mergePatch(`${UC}/a`, { metadata: { finalizers: ['x.example.com/b'] } })
    assert.equal(fewer.code, 200, fewer.text)
    assert.equal((await client.get(`${UC}/a`)).code, 200)
    assert.equal((await client.mergePatch(`${UC}/a`, { metadata: { finalizers: null } })).code, 200)
    assert.equal((await client.get(`${UC}/a`)).code, 404)
  })

  test('a collection, by label and dry', async () => {
    for (const name of ['a', 'b', 'c'])
      await created(cluster(name, {}, { labels: { half: name === 'c' ? 'other' : 'one' } }))
    const dry = await client.delete(`${UC}?labelSelector=half%3Done&dryRun=All`)
    assert.equal(dry.json.items.length, 2)
    const gone = await client.delete(`${UC}?labelSelector=half%3Done`)
    assert.equal(gone.json.kind, 'UpstreamClusterList')
    assert.deepEqual(
      gone.json.items.map(({ metadata }: Json) => metadata.name),
      ['a', 'b'],
    )
    const left = await client.get(UC)
    assert.deepEqual(
      left.json.items.map(({ metadata }: Json) => metadata.name),
      ['c'],
    )
  })
})
