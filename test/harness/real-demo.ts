// `portcullis demo --real`: the demo on two real clusters that the test harness builds and starts.
// Arguments: the addresses of the gateway, of the admin listener and of the gateway's API server; the directory.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import type { DemoBackend, StartBackends } from '../../src/demo/clusters.ts'
import { runDemo } from '../../src/demo/demo.ts'
import { DEMO_TOKENS } from '../../src/demo/traffic.ts'
import type { KeyPair } from '../../src/pki/io/pki.ts'
import { startCluster } from './clusters/cluster.ts'

/** What the gateway's own user needs where pods are protected, writes of replicas checked, and a recovery looks at nodes. */
const WORKER_RBAC = ['protection-worker', 'scale-worker', 'degrade-nodes'].map((name) => {
  return join(import.meta.dirname, `../../deploy/rbac/${name}.yaml`)
})

const startRealClusters: StartBackends = async (clientCA) => {
  process.stderr.write(
    'starting two real clusters; the first time ever, their programs are built, which takes minutes\n',
  )
  const prod = await startRealCluster('prod', { nodes: 2, replicas: 8 }, clientCA)
  return [prod, await startRealCluster('staging', { nodes: 2, replicas: 4 }, clientCA)]
}

/** `replicas`: of the deployment web, which runs in both. */
async function startRealCluster(
  name: string,
  { nodes, replicas }: { readonly nodes: number; readonly replicas: number },
  clientCA: KeyPair,
): Promise<DemoBackend> {
  const cluster = await startCluster({
    name,
    apiservers: 2,
    controllerManager: true,
    scheduler: true,
    kwok: true,
    kubelet: true,
    nodes,
    clientCA,
    tokens: Object.entries(DEMO_TOKENS).map(([user, token]) => ({ token, user, uid: `uid-of-${user}` })),
  })
  await cluster.apply(MANIFESTS + deployment('web', replicas))
  for (const file of WORKER_RBAC) await cluster.apply(readFileSync(file, 'utf8'))
  return {
    name,
    endpoints: cluster.apiservers.map(({ url }) => url),
    ca: cluster.ca.certPem,
    gateway: cluster.gatewayUser.cert,
    // kwok renews the leases, past the gateway.
    nodes: [],
    spareNode: 'node-0',
    stop: () => cluster.stop(),
  }
}

/** What the traffic and the guide speak of: the namespace shop, deployments in it, and what the users may do there. */
const MANIFESTS = `---
apiVersion: v1
kind: Namespace
metadata: { name: shop }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: features, namespace: shop }
data: { checkout: v3 }
${deployment('cart', 4)}${deployment('checkout', 4)}---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: demo-view }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view }
subjects:
  - { apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated' }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: demo-alice, namespace: shop }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin }
subjects:
  - { apiGroup: rbac.authorization.k8s.io, kind: User, name: alice }
  - { apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'oidc:developers' }
`

function deployment(name: string, replicas: number): string {
  return `---
apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name}, namespace: shop }
spec:
  replicas: ${replicas}
  selector: { matchLabels: { app: ${name} } }
  template:
    metadata: { labels: { app: ${name} } }
    spec: { containers: [{ name: ${name}, image: 'registry.example.com/${name}:1' }] }
`
}

const [listen = '127.0.0.1:8443', adminListen = '127.0.0.1:9090', controlListen = '127.0.0.1:9443', dir] =
  process.argv.slice(2)
process.exitCode = await runDemo(
  { listen, adminListen, controlListen, dir: dir ?? '.portcullis/demo' },
  startRealClusters,
)
