import { test } from 'node:test'
import { stringify } from 'yaml'
import { startProtectedClusters } from '../../harness/protected-clusters.ts'
import { waitFor } from '../../harness/wait.ts'
test('x', async () => {
  const world = await startProtectedClusters({ workers: 0, coreControllers: true, leastRights: true, flags: ['--log-level=debug'], generator: stringify({kinds: [{kind: 'Deployment'}, {kind: 'StatefulSet', protectNonZero: true}, {kind: 'ReplicaSet'}]}) })
  const t = Date.now()
  try {
    const labels = {app: 'a'}
    const r = await world.core.request('/apis/apps/v1/namespaces/default/deployments', {method: 'POST', body: {apiVersion: 'apps/v1', kind: 'Deployment', metadata: {name: 'a'}, spec: {replicas: 4, selector: {matchLabels: labels}, template: {metadata: {labels}, spec: {containers: [{name: 'm', image: 'n'}]}}}}})
    console.log(r.status, Date.now() - t)
    await waitFor('ppr', async () => (await world.protector('default', 'deployment-a')) !== undefined)
    console.log(Date.now() - t)
    const l = await world.core.request('/apis/coordination.k8s.io/v1/namespaces/default/leases')
    console.log(l.json().items.map((x: any) => JSON.stringify([x.metadata.name, x.metadata.creationTimestamp, x.spec])).join('\n'))
    console.log(world.gateway.logs())
  } finally { await world.stop() }
})
