// PodProtectors in a core cluster of their own (--protection-kubeconfig), with objects as files: the gateway as a process.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { ControlClient, PPR } from '../harness/clients/control-client.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { startControl } from '../harness/gateways/control.ts'
import { startGateway } from '../harness/gateways/gateway.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { startPodUpstream } from '../harness/upstreams/pod-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const NAME = 'prod.example.com'
const PROTECTORS = `${PPR}/namespaces/default/podprotectors`

test('deletions are written into the core that --protection-kubeconfig names', async (t) => {
  const core = await startControl()
  t.after(() => core.stop())
  const admin = new ControlClient(core, { cert: core.admin })
  t.after(() => admin.close())
  const metadata = { name: 'web', namespace: 'default' }
  const spec = { minAvailable: 2, minReadySeconds: 0, selector: { matchLabels: { app: 'a' } } }
  const object = { apiVersion: 'podseidon.kubewharf.io/v1alpha1', kind: 'PodProtector', metadata, spec }
  assert.equal((await admin.post(PROTECTORS, object)).code, 201)
  const counts = { totalReplicas: 3, availableReplicas: 3 }
  const summary = { totalReplicas: 3, aggregatedAvailableReplicas: 3, estimatedAvailableReplicas: 3 }
  const status = { cells: [{ cellID: NAME, aggregation: counts }], summary }
  assert.equal((await admin.mergePatch(`${PROTECTORS}/web/status`, { status })).code, 200)

  const upstream = await startPodUpstream()
  t.after(() => upstream.stub.stop())
  for (const name of ['a', 'b', 'c']) upstream.add(name)
  const clientCA = createCA({ commonName: 'clients' })
  const podProtection = { aggregation: { disabled: true } }
  const gateway = await startGateway({
    clusters: [clusterObject([upstream.stub], { name: NAME, clientCA, spec: { podProtection } })],
    args: [`--protection-kubeconfig=${core.kubeconfig}`],
  })
  t.after(() => gateway.stop())
  const session = h2Connect({ port: gateway.port, serverName: NAME, certificate: clientPair(clientCA, 'alice') })
  t.after(() => session.destroy())
  const remove = (name: string): ReturnType<typeof h2Request> =>
    h2Request(session, [':method', 'DELETE', ':path', `/api/v1/namespaces/default/pods/${name}`, ':authority', NAME])

  const first = await waitFor('the deletion of the first', async () => {
    const answer = await remove('a')
    return answer.status !== 503 && answer
  })
  assert.equal(first.status, 200, first.body.toString())
  const { json } = await admin.get(`${PROTECTORS}/web`)
  assert.deepEqual(
    json.status.cells[0].admissionHistory.buckets.map(({ podUID }: { podUID: string }) => podUID),
    ['uid-a'],
  )
  const second = await remove('b')
  assert.equal(second.status, 429, second.body.toString())
  assert.deepEqual(
    upstream.writes.map(({ path }) => path.split('/').at(-1)),
    ['a'],
  )
})
