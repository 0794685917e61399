// Kubernetes' own specs that list and watch, conformance among them, through a gateway that caches every resource of the cluster: in JSON, and in
// Protobuf as Kubernetes' own tests run.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { rareBinary } from '../harness/binaries.ts'
import { startCluster } from '../harness/clusters/cluster.ts'
import { cacheableResources, cacheResults, cacheStates, grantCacheUser } from '../harness/clusters/read-cache.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway } from '../harness/gateways/gateway.ts'
import { endWithThisProcess, guarded } from '../harness/process.ts'
import { waitFor } from '../harness/wait.ts'

/** Parts of their names. */
const SPECS = [
  ...['Watchers', 'API chunking', 'Table transformation', 'API Streaming', 'CustomResourceDefinition Watch'],
  ...['listing custom resource definition objects', 'API operations'],
  ...[
    'lifecycle of a (Deployment|ReplicationController|ResourceQuota|configMap|service|secret)',
    'ConfigMap lifecycle',
  ],
  ...['should find a service from listing all namespaces', 'should delete a collection of'],
]
/** A compaction is waited for, five minutes. (CustomResourceFieldSelectors needs a conversion webhook in a pod: there are no kubelets here.) */
const SKIPPED = ['Slow', 'compacted away']
const PASSED = /^Ran (\d+) of \d+ Specs/m

for (const encoding of ['application/json', 'application/vnd.kubernetes.protobuf']) {
  test(`specs that list and watch pass with every resource cached, in ${encoding}`, {
    timeout: 55 * 60_000,
  }, async (t) => {
    const cluster = await startCluster({ controllerManager: true, scheduler: true, kwok: true, nodes: 2 })
    t.after(() => cluster.stop())
    const cache = await cacheableResources(cluster)
    await grantCacheUser(cluster, cache)
    const gateway = await startGateway({ clusters: [upstreamClusterFor(cluster, { spec: { cache } })] })
    t.after(() => gateway.stop())
    await waitFor('the cache', async () => (await cacheStates(gateway)).every(({ resourceVersion }) => resourceVersion))
    const kubeconfig = await kubeconfigThrough(gateway, cluster, cluster.admin, { path: true })
    const program = await rareBinary('conformance')
    const [command, args] = guarded(program, [
      `--kubeconfig=${kubeconfig}`,
      '--provider=skeleton',
      '--allowed-not-ready-nodes=-1',
      `--kube-api-content-type=${encoding}`,
      `--ginkgo.focus=${SPECS.join('|')}`,
      `--ginkgo.skip=${SKIPPED.join('|')}`,
      '--ginkgo.no-color',
      '--ginkgo.timeout=50m',
    ])
    const child = spawn(command, args, { cwd: cluster.dir, stdio: ['ignore', 'pipe', 'pipe'] })
    endWithThisProcess(child)
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    }
    const [code] = await once(child, 'close')
    const failed = output.split('\n').filter((line) => line.startsWith('  [FAIL]'))
    const [, ran = '0'] = PASSED.exec(output) ?? []
    t.diagnostic(`${ran} specs; ${JSON.stringify(await cacheResults(gateway))}`)
    assert.deepEqual(failed, [], output.slice(-5000))
    assert.equal(code, 0, output.slice(-5000))
    assert.ok(Number(ran) > 30, `${ran} specs`)
  })
}
