// DEMO ONLY. What the demo's clusters hold when they start: nodes with their leases, namespaces, deployments and services.
// The pods come from the deployments (deployments.ts).

import type { ClusterState } from './call.ts'
import type { Json } from './json.ts'
import { addServiceAccount, newObject } from './objects.ts'
import { KINDS, type Resource } from './resources.ts'

export interface SampleSize {
  readonly nodes: number
  /** Replicas of each deployment are multiplied by this; at least one stays. */
  readonly scale: number
}

const NAMESPACES = ['default', 'kube-node-lease', 'kube-system', 'shop']

interface Application {
  readonly namespace: string
  readonly name: string
  readonly image: string
  readonly replicas: number
  readonly port: number
}

const APPLICATIONS: readonly Application[] = [
  { namespace: 'default', name: 'hello', image: 'registry.example.com/hello:1.4', replicas: 2, port: 8080 },
  { namespace: 'kube-system', name: 'coredns', image: 'registry.example.com/coredns:1.12', replicas: 2, port: 53 },
  {
    namespace: 'kube-system',
    name: 'metrics-server',
    image: 'registry.example.com/metrics-server:0.8',
    replicas: 1,
    port: 4443,
  },
  { namespace: 'shop', name: 'cart', image: 'registry.example.com/cart:2.1', replicas: 8, port: 8080 },
  { namespace: 'shop', name: 'catalog', image: 'registry.example.com/catalog:5.0', replicas: 10, port: 8080 },
  { namespace: 'shop', name: 'checkout', image: 'registry.example.com/checkout:3.7', replicas: 6, port: 8080 },
  { namespace: 'shop', name: 'payments', image: 'registry.example.com/payments:1.9', replicas: 4, port: 9000 },
  { namespace: 'shop', name: 'web', image: 'registry.example.com/web:7.2', replicas: 8, port: 80 },
]

export function addSampleData(state: ClusterState, size: SampleSize): void {
  for (const name of NAMESPACES) {
    add(state, KINDS.namespaces, '', { metadata: { name, labels: { 'kubernetes.io/metadata.name': name } } })
    addServiceAccount(state, name)
  }
  for (let i = 1; i <= size.nodes; i++) addNode(state, `${state.name}-node-${i}`, i)
  for (const application of APPLICATIONS) addApplication(state, application, size.scale)
  add(state, KINDS.configmaps, 'shop', { metadata: { name: 'features' }, data: { checkout: 'v3', discounts: 'on' } })
  const password = Buffer.from('not-a-secret').toString('base64')
  add(state, KINDS.secrets, 'shop', { metadata: { name: 'payments-db' }, type: 'Opaque', data: { password } })
}

function add(state: ClusterState, of: Resource, namespace: string, sent: Json): void {
  state.store.put(of, newObject(of, namespace, sent))
}

function addApplication(state: ClusterState, application: Application, scale: number): void {
  const { namespace, name, image, port } = application
  const labels = { app: name }
  const container = { name, image, ports: [{ containerPort: port, protocol: 'TCP' }] }
  add(state, KINDS.deployments, namespace, {
    metadata: { name, labels },
    spec: {
      replicas: Math.max(1, Math.round(application.replicas * scale)),
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container] } },
    },
  })
  const ports = [{ port, protocol: 'TCP', targetPort: port }]
  add(state, KINDS.services, namespace, { metadata: { name, labels }, spec: { selector: labels, ports } })
}

function addNode(state: ClusterState, name: string, number: number): void {
  const now = new Date().toISOString()
  const resources = { cpu: '8', memory: '32Gi', pods: '110' }
  const condition = {
    type: 'Ready',
    status: 'True',
    reason: 'KubeletReady',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  }
  add(state, KINDS.nodes, '', {
    metadata: { name, labels: { 'kubernetes.io/hostname': name, 'node-role.kubernetes.io/worker': '' } },
    spec: { podCIDR: `10.244.${number}.0/24` },
    status: {
      capacity: resources,
      allocatable: resources,
      conditions: [condition],
      addresses: [{ type: 'InternalIP', address: `10.0.0.${number}` }],
      nodeInfo: { kubeletVersion: 'v1.33.0', osImage: 'demo', architecture: 'amd64', operatingSystem: 'linux' },
    },
  })
  add(state, KINDS.leases, 'kube-node-lease', {
    metadata: { name },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: now },
  })
}
