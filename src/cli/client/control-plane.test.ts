import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryObjects } from '../../../test/harness/objects/memory-objects.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { statusErrorOf } from '../../kube/io/client-errors.ts'
import { POD_PROTECTORS } from '../../protection/api/pod-protector-kind.ts'
import { type ControlPlaneOptions, getCluster, withControlPlane } from './control-plane.ts'

/** Output of a command whose first call gets this answer. */
async function said(code: number, body: string, options: Partial<ControlPlaneOptions> = {}): Promise<string> {
  const client = new MemoryObjects()
  client.list = () => Promise.reject(statusErrorOf(code, body, ''))
  client.get = () => Promise.reject(statusErrorOf(code, body, ''))
  return await asked(client, 'prod', options)
}

async function asked(client: MemoryObjects, name: string, options: Partial<ControlPlaneOptions> = {}): Promise<string> {
  const said: string[] = []
  const io = { out: () => undefined, err: (text: string) => void said.push(text) }
  const exit = await withControlPlane({ client, ...io, ...options }, async (given) => {
    await getCluster(given, name)
    return 0
  })
  assert.equal(exit, 1)
  return said.join('')
}

test('an API server without UpstreamClusters is told from one that lacks the object', async () => {
  // kube-apiserver's answer for a path of an unknown group.
  const unknown = '404 page not found\n'
  const question = 'is it the one of the gateway? see --kubeconfig and --context\n'
  assert.equal(await said(404, unknown), `error: this API server has no UpstreamClusters; ${question}`)
  const protectors = { needs: 'get and list of podprotectors', kind: POD_PROTECTORS }
  assert.equal(await said(404, unknown, protectors), `error: this API server has no PodProtectors; ${question}`)
  const owner = 'KubeGateway'
  assert.match(await said(404, unknown, { owner }), /is it the one of KubeGateway\?/)
  assert.match(await said(403, ''), /the API server refuses: .*needs get, list and patch of upstreamclusters\n$/)
  const client = new MemoryObjects()
  client.put(UPSTREAM_CLUSTERS, { metadata: { name: 'prod' }, spec: {} })
  assert.match(await asked(client, 'prd'), /there is no UpstreamCluster "prd"; did you mean prod\?/)
})
