// The clusters behind the demo's gateway: the interface that the demo uses, and the small ones inside this process.

import type { UserInfo } from '../kube/api/user.ts'
import { createCA, issueCertificate, type KeyPair } from '../pki/io/pki.ts'
import { DEVELOPERS } from './cluster/access.ts'
import { type DemoCluster, startDemoCluster } from './cluster/demo-cluster.ts'
import { DEMO_TOKENS, nodeToken } from './traffic.ts'

/** A running cluster, as used by the demo's gateway. */
export interface DemoBackend {
  /** Name of an example in config/clusters/. */
  readonly name: string
  /** The apiservers, as many as the example names. */
  readonly endpoints: readonly string[]
  /** PEM of the CA of the apiservers' certificates. */
  readonly ca: string
  /** The gateway's own user there. */
  readonly gateway: KeyPair
  /** Nodes whose leases the demo should renew. */
  readonly nodes: readonly string[]
  /** A node that the guide drains. */
  readonly spareNode: string
  stop(): Promise<void>
}

/** Starts the backends; `clientCA` signs the demo's client certificates. */
export type StartBackends = (clientCA: KeyPair) => Promise<readonly DemoBackend[]>

/** Starts the clusters `prod` and `staging` in this process, each with two apiservers. */
export async function startInProcessClusters(): Promise<readonly DemoBackend[]> {
  return [
    await startInProcessCluster('prod', { nodes: 5, scale: 1 }),
    await startInProcessCluster('staging', { nodes: 3, scale: 0.5 }),
  ]
}

const GATEWAY_USER = 'portcullis'

async function startInProcessCluster(name: string, size: { nodes: number; scale: number }): Promise<DemoBackend> {
  const ca = createCA({ commonName: `${name} cluster CA` })
  const serverKeyPair = issueCertificate(ca, {
    commonName: 'kube-apiserver',
    usage: 'server',
    ipAddresses: ['127.0.0.1'],
  })
  const gateway = issueCertificate(ca, { commonName: GATEWAY_USER, usage: 'client' })
  const cluster: DemoCluster = await startDemoCluster({
    name,
    replicas: 2,
    clientCA: ca.certPem,
    serverKeyPair,
    gatewayUser: GATEWAY_USER,
    tokens: demoUsers(name, size.nodes),
    size,
  })
  const { urls: endpoints, nodes } = cluster
  const spareNode = nodes[0] ?? ''
  return { name, endpoints, ca: ca.certPem, gateway, nodes, spareNode, stop: async () => cluster.stop() }
}

function demoUsers(cluster: string, nodes: number): ReadonlyMap<string, UserInfo> {
  const users = new Map<string, UserInfo>()
  for (const [name, token] of Object.entries(DEMO_TOKENS)) {
    users.set(token, { name, uid: `uid-of-${name}`, groups: name === 'alice' ? [DEVELOPERS] : [], extra: {} })
  }
  for (let i = 1; i <= nodes; i++) {
    const node = `${cluster}-node-${i}`
    users.set(nodeToken(node), { name: `system:node:${node}`, uid: '', groups: ['system:nodes'], extra: {} })
  }
  return users
}
