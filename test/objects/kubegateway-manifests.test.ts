// Manifests of KubeGateway apply unchanged: to the embedded API server, and as files, without Redis. What is not in force as it is
// written is said in a warning; the CRD of a real kube-apiserver is asked in test/e2e/control/crds.test.ts.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { checkUpstreamCluster, normalizeUpstreamCluster } from '../../src/gateway/api/upstream-cluster/checks.ts'
import { upstreamClusterKind } from '../../src/gateway/api/upstream-cluster-kind.ts'
import { compileCluster } from '../../src/gateway/core/cluster/compile-cluster.ts'
import { loadDirectory } from '../../src/gateway/io/sources/files/source.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { ControlClient } from '../harness/clients/control-client.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'
import { kubeGatewayManifests, kubeGatewayObjects } from '../harness/objects/kubegateway-objects.ts'

const PATH = '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters'
const WITHOUT_REDIS = { globalLimits: false }
const MANIFESTS = kubeGatewayManifests()
let control: TestControl
let client: ControlClient

before(async () => {
  control = await startControl({ clusters: upstreamClusterKind(WITHOUT_REDIS) })
  client = new ControlClient(control, { cert: control.admin })
})

after(async () => {
  client.close()
  await control.stop()
})

test('the corpus is complete', () => {
  assert.ok(MANIFESTS.length >= 30)
  assert.ok(MANIFESTS.filter(({ errors }) => errors.length === 0).length >= 25)
})

describe('the embedded API server', () => {
  for (const { name, object, warnings, errors } of MANIFESTS) {
    test(name, async () => {
      const answer = await client.call('POST', `${PATH}?dryRun=All`, { body: object })
      assert.equal(answer.code, errors.length === 0 ? 201 : 422, JSON.stringify(answer.json))
      const causes = (answer.json.details?.causes ?? []).map(({ field }: { field: string }) => field)
      assert.deepEqual(causes, errors)
      if (errors.length > 0) return
      const told = String(answer.headers['warning'] ?? '')
      for (const path of warnings) {
        // About fields that the schema does not know it says as much as a kube-apiserver.
        assert.ok(told.includes(`"${path}: `) || told.includes(`unknown field \\"${path}\\"`), `${path} in ${told}`)
      }
      assert.equal(told.split('299 - ').length - 1, warnings.length, told)
    })
  }

  test('unknown fields are refused if the client asks for that, as in every API server', async () => {
    const unknown = MANIFESTS.find(({ name }) => name.startsWith('unknown fields'))
    assert.ok(unknown)
    const strict = `${PATH}?dryRun=All&fieldValidation=Strict`
    const answer = await client.call('POST', strict, { body: unknown.object })
    assert.equal(answer.code, 400)
    assert.match(answer.json.message, /strict decoding error: unknown field "spec\.bogus"/)
  })
})

test('files: what is accepted is in force, and each warning says what is', async () => {
  for (const { name, object, warnings, errors } of MANIFESTS) {
    const dir = mkdtempSync(join(tmpdir(), 'portcullis-manifests-'))
    try {
      writeFileSync(join(dir, 'a.json'), JSON.stringify(object))
      const { clusters, problems } = await loadDirectory(dir, nodePemChecks, WITHOUT_REDIS)
      assert.equal(clusters.size, errors.length === 0 ? 1 : 0, name)
      const paths = (severity: string): string[] =>
        problems.filter((problem) => problem.severity === severity).map(({ path }) => path)
      assert.deepEqual(paths('error'), errors, name)
      if (errors.length === 0) assert.deepEqual(new Set(paths('warning')), new Set(warnings), name)
      for (const { message } of problems) assert.notEqual(message, '')
    } finally {
      rmSync(dir, { recursive: true })
    }
  }
})

test('objects made from its types are accepted, and what is in force needs no Redis', () => {
  let warned = 0
  fc.assert(
    fc.property(kubeGatewayObjects, (object) => {
      const problems = checkUpstreamCluster(object, nodePemChecks, WITHOUT_REDIS)
      assert.deepEqual(
        problems.filter(({ severity }) => severity === 'error'),
        [],
      )
      if (problems.length > 0) warned++
      const { schemas, client, endpoints } = compileCluster({
        object: normalizeUpstreamCluster(object, WITHOUT_REDIS),
        revision: 'r',
      })
      for (const { shared } of schemas) assert.equal(shared, undefined)
      assert.equal(client.insecure && client.ca !== '', false)
      assert.equal(client.key === '', client.cert === '')
      assert.ok(endpoints[0]?.scheme === 'https' || client.bearerToken === '')
    }),
    { numRuns: 500 },
  )
  assert.ok(warned > 50, `${warned}`)
})
