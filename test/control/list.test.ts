// Lists of the embedded API server: pages, selectors, revisions, and the forms of an answer.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ControlClient, cluster, type Json, secret, UC } from '../harness/clients/control-client.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'

const NAMES = ['a', 'b', 'c', 'd', 'e']
let control: TestControl
let client: ControlClient

before(async () => {
  control = await startControl({ historyRevisions: 20 })
  client = new ControlClient(control, { cert: control.admin })
  for (const name of NAMES) {
    const labels = { tier: name < 'c' ? 'front' : 'back', ...(name === 'e' && { extra: '7' }) }
    assert.equal((await client.post(UC, cluster(name, {}, { labels }))).code, 201)
  }
  await client.post('/api/v1/namespaces/default/secrets', secret('one'))
  await client.post('/api/v1/namespaces/kube-system/secrets', secret('two', { type: 'example.com/x' }))
})
after(async () => {
  client.close()
  await control.stop()
  assert.deepEqual(control.errors, [])
})

function names({ json, text }: { json: Json; text: string }): string[] {
  assert.ok(Array.isArray(json.items), text)
  return json.items.map(({ metadata }: Json) => metadata.name)
}

const select = async (labelSelector: string): Promise<string[]> =>
  names(await client.get(`${UC}?labelSelector=${encodeURIComponent(labelSelector)}`))

test('a list has its kind and the revision of the store', async () => {
  const { json } = await client.get(UC)
  assert.equal(json.kind, 'UpstreamClusterList')
  assert.equal(json.apiVersion, 'proxy.kubegateway.io/v1alpha1')
  assert.equal(json.metadata.resourceVersion, String(control.store.revision))
  assert.deepEqual(names({ json, text: '' }), NAMES)
  assert.deepEqual((await client.get('/apis/coordination.k8s.io/v1/leases')).json.items, [])
})

describe('label selectors', () => {
  const table: [selector: string, found: string[]][] = [
    ['tier=front', ['a', 'b']],
    ['tier==back', ['c', 'd', 'e']],
    ['tier!=front', ['c', 'd', 'e']],
    ['tier in (front,middle)', ['a', 'b']],
    ['tier notin (front)', ['c', 'd', 'e']],
    ['extra', ['e']],
    ['!extra', ['a', 'b', 'c', 'd']],
    ['extra>6', ['e']],
    ['extra<7', []],
    ['extra!=7,tier=back', ['c', 'd']],
    ['', NAMES],
  ]
  for (const [selector, found] of table) {
    test(selector, async () => assert.deepEqual(await select(selector), found))
  }

  test('an invalid selector is 400 with the message of labels.Parse', async () => {
    for (const [selector, message] of [
      ['a in (b', "unable to parse requirement: found '', expected: ',' or ')'"],
      ['a=b=c', "found '=', expected: ',' or 'end of string'"],
      ['a,', "found '', expected: identifier after ','"],
      ['=a', "found '=', expected: !, identifier, or 'end of string'"],
    ] as const) {
      const { json } = await client.get(`${UC}?labelSelector=${encodeURIComponent(selector)}`)
      assert.equal(json.reason, 'BadRequest')
      assert.equal(json.message, message)
    }
    const { json } = await client.get(`${UC}?labelSelector=${encodeURIComponent('a=-b')}`)
    assert.match(json.message, /a valid label must be an empty string or consist of alphanumeric characters/)
  })
})

describe('field selectors', () => {
  test('names, namespaces and the selectable fields of the kind', async () => {
    assert.deepEqual(names(await client.get(`${UC}?fieldSelector=metadata.name%3Db`)), ['b'])
    assert.deepEqual(names(await client.get(`${UC}?fieldSelector=metadata.name!%3Db`)), ['a', 'c', 'd', 'e'])
    assert.deepEqual(names(await client.get('/api/v1/secrets?fieldSelector=metadata.namespace%3Ddefault')), ['one'])
    assert.deepEqual(names(await client.get('/api/v1/secrets?fieldSelector=type%3Dexample.com/x')), ['two'])
    assert.deepEqual(names(await client.get('/api/v1/namespaces?fieldSelector=status.phase%3DActive')), [
      'default',
      'kube-system',
    ])
  })

  test('others are 400', async () => {
    const custom = await client.get(`${UC}?fieldSelector=spec.default%3Dtrue`)
    assert.equal(custom.json.message, 'field label not supported: spec.default')
    const lease = await client.get('/apis/coordination.k8s.io/v1/leases?fieldSelector=spec.x%3D1')
    assert.equal(
      lease.json.message,
      '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
    )
    const scoped = await client.get(`${UC}?fieldSelector=metadata.namespace%3Dx`)
    assert.equal(scoped.json.message, 'field label not supported: metadata.namespace')
    const unescaped = await client.get(`${UC}?fieldSelector=metadata.name%3Da%3Db`)
    assert.equal(unescaped.json.message, 'invalid field selector: unescaped character in value: 61')
    const core = await client.get('/api/v1/secrets?fieldSelector=data.x%3D1')
    assert.equal(core.json.message, 'field label not supported: data.x')
    const broken = await client.get(`${UC}?fieldSelector=metadata.name`)
    assert.equal(broken.json.message, "invalid selector: 'metadata.name'; can't understand 'metadata.name'")
    assert.equal(broken.code, 400)
  })
})

describe('pages', () => {
  test('are consistent, and report what remains', async () => {
    const first = await client.get(`${UC}?limit=2`)
    assert.deepEqual(names(first), ['a', 'b'])
    const { continue: token, remainingItemCount, resourceVersion } = first.json.metadata
    assert.equal(remainingItemCount, 3)
    assert.equal((await client.mergePatch(`${UC}/d`, { metadata: { annotations: { later: 'x' } } })).code, 200)
    assert.equal((await client.post(UC, cluster('c2'))).code, 201)
    const second = await client.get(`${UC}?limit=2&continue=${token}`)
    assert.deepEqual(names(second), ['c', 'd'])
    assert.equal(second.json.metadata.resourceVersion, resourceVersion)
    assert.equal(second.json.items[1].metadata.annotations, undefined)
    const last = await client.get(`${UC}?limit=2&continue=${second.json.metadata.continue}`)
    assert.deepEqual(names(last), ['e'])
    assert.equal(last.json.metadata.continue, undefined)
    assert.equal(last.json.metadata.remainingItemCount, undefined)
    await client.delete(`${UC}/c2`)
  })

  test('with a selector nothing is counted', async () => {
    const { json } = await client.get(`${UC}?limit=1&labelSelector=tier%3Dback`)
    assert.equal(json.items[0].metadata.name, 'c')
    assert.equal(json.metadata.remainingItemCount, undefined)
    assert.notEqual(json.metadata.continue, undefined)
  })

  test('too old: 410, with a token for the rest as it is now', async () => {
    let now = Date.now()
    const aged = await startControl({ historyRevisions: 2, now: () => now })
    const admin = new ControlClient(aged, { cert: aged.admin })
    try {
      for (const name of NAMES) await admin.post(UC, cluster(name))
      const first = await admin.get(`${UC}?limit=2`)
      await admin.mergePatch(`${UC}/a`, { metadata: { annotations: { i: '' } } })
      now += 60 * 60 * 1000
      for (let i = 0; i < 20; i++) await admin.mergePatch(`${UC}/a`, { metadata: { annotations: { i: String(i) } } })
      const { json, code } = await admin.get(`${UC}?limit=2&continue=${first.json.metadata.continue}`)
      assert.equal(code, 410)
      assert.equal(json.reason, 'Expired')
      assert.match(json.message, /^The provided continue parameter is too old to display a consistent list result\./)
      const rest = await admin.get(`${UC}?limit=9&continue=${json.metadata.continue}`)
      assert.deepEqual(names(rest), ['c', 'd', 'e'])
      const exact = await admin.get(`${UC}?resourceVersion=3&resourceVersionMatch=Exact`)
      assert.equal(exact.code, 410)
      assert.equal(exact.json.message, 'The resourceVersion for the provided list is too old.')
    } finally {
      admin.close()
      await aged.stop()
    }
  })

  test('a token that is none', async () => {
    assert.equal((await client.get(`${UC}?limit=2&continue=xyz`)).code, 400)
    const first = await client.get(`${UC}?limit=2`)
    const both = await client.get(`${UC}?resourceVersion=5&continue=${first.json.metadata.continue}`)
    assert.equal(both.json.message, 'specifying resource version is not allowed when using continue')
  })
})

describe('revisions', () => {
  test('Exact shows the past, NotOlderThan the present, the future is 504', async () => {
    const before = String(control.store.revision)
    await client.post(UC, cluster('z'))
    const exact = await client.get(`${UC}?resourceVersion=${before}&resourceVersionMatch=Exact`)
    assert.deepEqual(names(exact), NAMES)
    assert.equal(exact.json.metadata.resourceVersion, before)
    const newer = await client.get(`${UC}?resourceVersion=${before}&resourceVersionMatch=NotOlderThan`)
    assert.deepEqual(names(newer), [...NAMES, 'z'])
    await client.delete(`${UC}/z`)
    const future = await client.get(`${UC}?resourceVersion=${control.store.revision + 5}`)
    assert.equal(future.code, 504)
    assert.equal(future.json.reason, 'Timeout')
    assert.equal(future.json.details.causes[0].reason, 'ResourceVersionTooLarge')
    assert.equal(future.headers['retry-after'], '1')
  })

  const invalid: [query: string, message: RegExp][] = [
    [
      'resourceVersion=0&resourceVersionMatch=Exact',
      /resourceVersionMatch "exact" is forbidden for resourceVersion "0"/,
    ],
    ['resourceVersionMatch=Exact', /forbidden unless resourceVersion is provided/],
    ['resourceVersion=1&resourceVersionMatch=NotOlderThan&continue=x', /forbidden when continue is provided/],
    ['resourceVersion=1&resourceVersionMatch=Newest', /Unsupported value: "Newest"/],
    ['sendInitialEvents=true', /sendInitialEvents is forbidden for list/],
  ]
  for (const [query, message] of invalid) {
    test(`${query} is 422`, async () => {
      const { code, json } = await client.get(`${UC}?${query}`)
      assert.equal(code, 422)
      assert.match(json.message, /^ListOptions\.meta\.k8s\.io "" is invalid: /)
      assert.match(json.message, message)
    })
  }

  test('numbers that are none are 400', async () => {
    assert.equal((await client.get(`${UC}?limit=x`)).json.message, 'strconv.ParseInt: parsing "x": invalid syntax')
    assert.equal((await client.get(`${UC}?resourceVersion=x`)).code, 400)
  })
})

describe('forms', () => {
  const accept = (kind: string): Record<string, string> => ({
    accept: `application/json;as=${kind};v=v1;g=meta.k8s.io`,
  })

  test('Table', async () => {
    const { json } = await client.get(`${UC}?limit=2`, accept('Table'))
    assert.equal(json.kind, 'Table')
    assert.equal(json.columnDefinitions[0].name, 'Name')
    assert.equal(json.rows.length, 2)
    assert.equal(json.rows[0].cells[0], 'a')
    assert.equal(json.rows[0].object.kind, 'PartialObjectMetadata')
    assert.equal(json.metadata.remainingItemCount, 3)
    const whole = await client.get(`${UC}/a?includeObject=Object`, accept('Table'))
    assert.equal(whole.json.rows[0].object.kind, 'UpstreamCluster')
    assert.equal((await client.get(`${UC}/a?includeObject=Some`, accept('Table'))).code, 400)
  })

  test('PartialObjectMetadata', async () => {
    const one = await client.get(`${UC}/a`, accept('PartialObjectMetadata'))
    assert.equal(one.json.kind, 'PartialObjectMetadata')
    assert.equal(one.json.spec, undefined)
    const list = await client.get(UC, accept('PartialObjectMetadataList'))
    assert.equal(list.json.kind, 'PartialObjectMetadataList')
    assert.deepEqual(names(list), NAMES)
  })

  test('an impossible form is 406', async () => {
    const { code, json } = await client.get(UC, { accept: 'text/html' })
    assert.equal(code, 406)
    assert.equal(json.reason, 'NotAcceptable')
  })

  test('HEAD is GET without its body', async () => {
    const get = await client.get(`${UC}/a`)
    const head = await client.call('HEAD', `${UC}/a`)
    assert.equal(head.code, 200)
    assert.equal(head.text, '')
    assert.equal(head.headers['content-length'], String(Buffer.byteLength(get.text)))
    assert.equal((await client.call('HEAD', `${UC}/none`)).code, 404)
  })
})
