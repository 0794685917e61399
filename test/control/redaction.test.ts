// Role view reads UpstreamClusters, and by no path the keys and tokens that stand in them.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { issueControlCertificate } from '../../src/pki/io/control-pki.ts'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'
import { ControlClient, type ControlResponse, cluster, type Json, UC } from '../harness/clients/control-client.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
const REDACTED = base64('REDACTED')
const TOKEN = 'upstream-token-of-the-gateway'

const ca = createCA({ commonName: 'test' })
const pair = issueCertificate(ca, { commonName: 'gateway', usage: 'both', dnsNames: ['a.example.com'] })
const before1 = issueCertificate(ca, { commonName: 'before', usage: 'both', dnsNames: ['a.example.com'] })
/** What no viewer may see: as it stands in the object, and as it is. */
const KEYS = [pair.keyPem, before1.keyPem]
const SECRETS = [TOKEN, base64(TOKEN), ...KEYS.flatMap((key) => [base64(key), key, JSON.stringify(key).slice(1, -1)])]

let control: TestControl
let admin: ControlClient
let viewer: ControlClient

function object(name: string): Json {
  const spec = {
    clientConfig: {
      bearerToken: base64(TOKEN),
      // A key that is put beside the certificate is where it is not expected.
      certData: base64(pair.certPem + pair.keyPem),
      keyData: base64(pair.keyPem),
      caData: base64(ca.certPem),
    },
    secureServing: {
      certData: base64(pair.certPem),
      keyData: base64(pair.keyPem),
      serverNames: [`${name}.example.com`],
    },
  }
  const applied = cluster(name, spec)
  const annotations = {
    [LAST_APPLIED]: JSON.stringify(applied),
    'kapp.example.com/original': `spec:\n  secureServing:\n    keyData: ${base64(before1.keyPem)}\n`,
    'example.com/raw': before1.keyPem,
    'example.com/token': `the token is ${TOKEN}`,
    'example.com/note': 'uses bearerTokenRef elsewhere',
  }
  return { ...applied, metadata: { name, annotations } }
}

before(async () => {
  control = await startControl()
  admin = new ControlClient(control, { cert: control.admin })
  viewer = new ControlClient(control, { cert: control.viewer })
  for (const name of ['a', 'b']) {
    const { code, text } = await admin.post(UC, object(name))
    assert.equal(code, 201, text)
  }
})
after(async () => {
  for (const client of [admin, viewer]) client.close()
  await control.stop()
  assert.deepEqual(control.errors, [])
})

/** As the wire has it, and with all JSON within JSON unwrapped. */
function assertHidden(text: string, where: string): void {
  const plain = text.replaceAll(/\\+n/g, '\n').replaceAll(/\\+"/g, '"')
  for (const secret of SECRETS) {
    for (const shown of [text, plain]) assert.ok(!shown.includes(secret), `${where} shows ${secret.slice(0, 40)}`)
  }
  assert.ok(!plain.includes('PRIVATE KEY'), where)
}

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const PARTIAL = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
const PARTIAL_LIST = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
const ENCODINGS = [TABLE, PARTIAL, PARTIAL_LIST, 'application/json', 'application/yaml', '*/*']

test('an administrator sees them, a viewer the rest', async () => {
  const whole = (await admin.get(`${UC}/a`)).json
  assert.equal(whole.spec.secureServing.keyData, base64(pair.keyPem))
  assert.equal(whole.spec.clientConfig.bearerToken, base64(TOKEN))
  assert.ok(whole.metadata.annotations[LAST_APPLIED].includes(base64(TOKEN)))

  const { text, json } = await viewer.get(`${UC}/a`)
  assertHidden(text, 'get')
  const { clientConfig, secureServing } = json.spec
  assert.deepEqual(clientConfig, {
    ...whole.spec.clientConfig,
    bearerToken: REDACTED,
    keyData: REDACTED,
    certData: REDACTED,
  })
  assert.equal(clientConfig.caData, base64(ca.certPem))
  assert.deepEqual(secureServing, { ...whole.spec.secureServing, keyData: REDACTED })
  assert.deepEqual(json.metadata.annotations, { 'example.com/note': 'uses bearerTokenRef elsewhere' })
  assert.deepEqual(json.metadata.managedFields, whole.metadata.managedFields)
  assert.deepEqual(json.spec.dispatchPolicies, whole.spec.dispatchPolicies)
  // The copy was for that answer alone.
  assert.deepEqual((await admin.get(`${UC}/a`)).json, whole)
})

test('by no form and encoding of get and list', async () => {
  const paths = [`${UC}/a`, `${UC}/a/status`, UC, `${UC}?limit=1`, `${UC}?fieldSelector=metadata.name=a`]
  for (const path of paths) {
    for (const accept of ENCODINGS) {
      for (const include of ['', 'None', 'Metadata', 'Object']) {
        const query = include === '' ? '' : `${path.includes('?') ? '&' : '?'}includeObject=${include}`
        const where = `${path}${query} ${accept}`
        const { code, text } = await viewer.get(`${path}${query}`, { accept })
        assert.equal(code, 200, where)
        assertHidden(text, where)
      }
    }
  }
  const pretty = await viewer.get(`${UC}/a?pretty=1`)
  assertHidden(pretty.text, 'pretty')
  assert.match(pretty.text, /\n {2}"metadata"/)
})

test('nor by a watch: initial events, history, changes and deletions', async () => {
  const revision = (await admin.get(UC)).json.metadata.resourceVersion
  assert.equal((await admin.post(UC, object('c'))).code, 201)
  assert.equal((await admin.mergePatch(`${UC}/c`, { metadata: { labels: { shown: 'yes' } } })).code, 200)
  assert.equal((await admin.mergePatch(`${UC}/c`, { metadata: { labels: { shown: null } } })).code, 200)
  assert.equal((await admin.delete(`${UC}/c`)).code, 200)
  for (const accept of [TABLE, PARTIAL, 'application/json']) {
    for (const query of [
      `watch=1&resourceVersion=${revision}&includeObject=Object`,
      `watch=1&resourceVersion=${revision}&labelSelector=shown%3Dyes`,
      'watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&includeObject=Object',
    ]) {
      const watch = await viewer.watch(`${UC}?${query}`, { accept })
      const events = await watch.count(2)
      assertHidden(JSON.stringify(events), `${query} ${accept}`)
      watch.close()
    }
  }
  const watch = await viewer.watch(`${UC}?watch=1&resourceVersion=${revision}`)
  const events = await watch.count(4)
  assert.deepEqual(
    events.map(({ type, object }) => [type, object.spec.secureServing.keyData]),
    ['ADDED', 'MODIFIED', 'MODIFIED', 'DELETED'].map((type) => [type, REDACTED]),
  )
  watch.close()
  // One stream of events serves both, each as it may see it.
  const both = await Promise.all([admin, viewer].map((client) => client.watch(`${UC}?watch=1`)))
  await admin.mergePatch(`${UC}/b`, { metadata: { labels: { round: '2' } } })
  const shown = await Promise.all(both.map((one) => one.count(3)))
  assert.deepEqual(
    shown.map((events) => events.at(-1).object.spec.secureServing.keyData),
    [base64(pair.keyPem), REDACTED],
  )
  for (const one of both) one.close()
})

describe('roles', () => {
  test('an administrator who impersonates a viewer sees what a viewer sees, and no user can escalate', async () => {
    const headers = { 'impersonate-user': 'bob', 'impersonate-group': 'portcullis:viewers' }
    assertHidden((await admin.get(`${UC}/a`, headers)).text, 'impersonated')
    const up = { 'impersonate-user': 'alice', 'impersonate-group': 'portcullis:admins' }
    assert.equal((await viewer.get(`${UC}/a`, up)).code, 403)
  })

  test('a user with both roles is an administrator', async () => {
    const cert = issueControlCertificate(`${control.dir}/pki`, {
      user: 'both',
      groups: ['portcullis:viewers', 'portcullis:admins'],
    })
    const client = new ControlClient(control, { cert })
    assert.equal((await client.get(`${UC}/a`)).json.spec.clientConfig.bearerToken, base64(TOKEN))
    client.close()
  })

  test('no write of a viewer is answered with more than its refusal', async () => {
    const attempts: Promise<ControlResponse>[] = [
      viewer.mergePatch(`${UC}/a?dryRun=All`, { metadata: { labels: { a: 'b' } } }),
      viewer.apply(`${UC}/a?dryRun=All&fieldManager=x&force=true`, object('a')),
      viewer.call('PATCH', `${UC}/a`, { body: [], contentType: 'application/json-patch+json' }),
      viewer.put(`${UC}/a?dryRun=All`, object('a')),
      viewer.post(`${UC}?dryRun=All`, object('z')),
      viewer.delete(`${UC}/a?dryRun=All`),
      viewer.delete(`${UC}?dryRun=All`),
      viewer.mergePatch(`${UC}/a/status?dryRun=All`, { status: {} }),
    ]
    for (const { code, text } of await Promise.all(attempts)) {
      assert.equal(code, 403)
      assertHidden(text, 'refusal')
    }
  })
})

describe('what a viewer exported, written by an administrator', () => {
  test('the redaction mark is refused anywhere, and nothing is stored', async () => {
    const whole = (await admin.get(`${UC}/a`)).json
    const seen = (await viewer.get(`${UC}/a`)).json
    const spec = { clientConfig: { bearerToken: REDACTED } }
    const json = [{ op: 'replace', path: '/spec/secureServing/keyData', value: REDACTED }]
    const attempts: Promise<ControlResponse>[] = [
      admin.put(`${UC}/a`, seen),
      admin.mergePatch(`${UC}/a`, { spec }),
      admin.mergePatch(`${UC}/a?dryRun=All`, { spec }),
      admin.call('PATCH', `${UC}/a`, { body: json, contentType: 'application/json-patch+json' }),
      admin.apply(`${UC}/a?fieldManager=x&force=true`, { apiVersion: seen.apiVersion, kind: seen.kind, spec }),
      admin.post(UC, cluster('fresh', { clientConfig: { bearerToken: REDACTED, insecure: true } })),
    ]
    for (const { code, text } of await Promise.all(attempts)) {
      assert.equal(code, 422, text)
      assert.match(text, /is the placeholder of a hidden value; read the object with a role that sees keys/)
    }
    assert.deepEqual((await admin.get(`${UC}/a`)).json, whole)
    assert.equal((await admin.get(`${UC}/fresh`)).code, 404)
  })

  test('without the keys, the rest of what was seen can be patched', async () => {
    const { json } = await viewer.get(`${UC}/a`)
    const patch = { metadata: { labels: { seen: json.metadata.name } } }
    const { code, json: after } = await admin.mergePatch(`${UC}/a`, patch)
    assert.equal(code, 200)
    assert.equal(after.spec.secureServing.keyData, base64(pair.keyPem))
  })
})
