// An UpstreamCluster is written that refers to a Secret: whether the Secret is released to it is checked, and an old release is said in a Warning.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { reviewAdmission } from '../../src/apiserver/webhooks/webhook.ts'
import { upstreamClusterKind } from '../../src/gateway/api/upstream-cluster-kind.ts'
import { resolveAtWrite } from '../../src/gateway/io/secrets/references-at-write.ts'
import { SECRETS } from '../../src/kube/api/kinds/secret-kind.ts'
import { resourceName } from '../../src/kube/api/resource-kind.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { ControlClient, type ControlResponse, cluster, secret, UC } from '../harness/clients/control-client.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'

const USABLE_BY = 'portcullis.io/usable-by'
const SECRETS_PATH = '/api/v1/namespaces/portcullis-system/secrets'
const OLD = 'is released to all UpstreamClusters, which ends with the next minor version'
const token = { bearerTokenRef: { namespace: 'portcullis-system', name: 'prod-upstream', key: 'token' } }
const spec = { clientConfig: { insecure: true, ...token } }
const kind = upstreamClusterKind({
  resolve: (object) =>
    resolveAtWrite(
      object,
      (namespace, name) => control.store.get({ resource: resourceName(SECRETS), namespace, name })?.object,
      ['portcullis-system'],
    ),
})
let control: TestControl
let client: ControlClient

before(async () => {
  control = await startControl({ clusters: kind })
  client = new ControlClient(control, { cert: control.admin })
  await client.post('/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'portcullis-system' },
  })
  const created = await client.post(SECRETS_PATH, secret('prod-upstream', { stringData: { token: 'x' } }))
  assert.equal(created.code, 201, created.text)
})
after(async () => {
  client.close()
  await control.stop()
  assert.deepEqual(control.errors, [])
})

function patch(path: string, body: object): Promise<ControlResponse> {
  return client.call('PATCH', path, { contentType: 'application/merge-patch+json', body })
}

async function annotate(usableBy: string | null): Promise<void> {
  const annotations = { [USABLE_BY]: usableBy }
  const { code, text } = await patch(`${SECRETS_PATH}/prod-upstream`, { metadata: { annotations } })
  assert.equal(code, 200, text)
}

/** The warnings of a webhook, which kube-apiserver cuts off at 256 characters. */
function reviewed(name: string): readonly string[] {
  const resource = { group: 'proxy.kubegateway.io', version: 'v1alpha1', resource: 'upstreamclusters' }
  const request = { uid: 'u1', operation: 'CREATE', resource, object: cluster(name, spec) }
  const body = { kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', request }
  const { response } = reviewAdmission(body, { scheme: [kind], pem: nodePemChecks }, []) as {
    response: { allowed: boolean; warnings?: readonly string[] }
  }
  return response.allowed ? (response.warnings ?? []) : ['refused']
}

test('the writer of an UpstreamCluster is told that its Secret is released in the old way, until it names the cluster', async () => {
  const created = await client.post(UC, cluster('prod', spec))
  assert.equal(created.code, 201, created.text)
  const warning = String(created.headers['warning'])
  assert.match(warning, /^299 - "spec\.clientConfig\.bearerTokenRef: Secret portcullis-system\/prod-upstream /)
  assert.ok(warning.includes(OLD), warning)
  assert.match(warning, /portcullis\.io\/usable-by=prod"$/)
  const frozen = await patch(`${UC}/prod`, { spec: { degrade: { mode: 'ReadOnly', reason: 'x' } } })
  assert.equal(frozen.code, 200, frozen.text)
  assert.ok(String(frozen.headers['warning']).includes(OLD))
  const [reviewWarning = '', ...more] = reviewed('prod-eu-west-1.example.com')
  assert.deepEqual(more, [])
  assert.ok(reviewWarning.includes(OLD))
  assert.match(reviewWarning, /portcullis\.io\/usable-by=prod-eu-west-1\.example\.com$/)

  await annotate('prod')
  const quiet = await patch(`${UC}/prod`, { spec: { degrade: { mode: 'Off' } } })
  assert.deepEqual([quiet.code, quiet.headers['warning']], [200, undefined])
  const refused = await client.post(UC, cluster('mallory', spec))
  assert.equal(refused.code, 422, refused.text)
  assert.match(
    refused.text,
    /may not be used by UpstreamCluster mallory: its annotation portcullis\.io\/usable-by does not/,
  )
  assert.deepEqual(reviewed('mallory'), ['refused'])

  await annotate(null)
  const again = await patch(`${UC}/prod`, { metadata: { labels: { a: 'b' } } })
  assert.ok(String(again.headers['warning']).includes(OLD))
})
