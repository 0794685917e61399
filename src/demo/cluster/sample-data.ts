// Initial contents of the demo's clusters: nodes with their leases, namespaces, deployments and services.
// The pods are created by the deployments (workloads.ts).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { metaMicroTime, metaTime } from '../../kit/core/text/meta-time.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import { SECRETS } from '../../kube/api/kinds/secret-kind.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { DEMO_CONFIG_MAPS, DEMO_NODES, SERVICES } from '../kinds/core-kinds.ts'
import { DEMO_DEPLOYMENTS } from '../kinds/workload-kinds.ts'
import { LEASE_NAMESPACE } from './kubelets.ts'
import type { DemoObjects } from './objects.ts'

export interface SampleSize {
  readonly nodes: number
  /** Replicas of each deployment are multiplied by this; at least one stays. */
  readonly scale: number
}

/** In addition to those of every API server. */
const SAMPLE_NAMESPACES = [LEASE_NAMESPACE, 'shop']

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

/** @param name of the cluster, from which the node names are derived */
export function addSampleData(objects: DemoObjects, name: string, size: SampleSize): void {
  for (const namespace of SAMPLE_NAMESPACES) add(objects, NAMESPACES, { metadata: { name: namespace } })
  for (let i = 1; i <= size.nodes; i++) addNode(objects, `${name}-node-${i}`, i)
  for (const application of APPLICATIONS) addApplication(objects, application, size.scale)
  const features = { checkout: 'v3', discounts: 'on' }
  add(objects, DEMO_CONFIG_MAPS, { metadata: { name: 'features', namespace: 'shop' }, data: features })
  const password = Buffer.from('not-a-secret').toString('base64')
  add(objects, SECRETS, { metadata: { name: 'payments-db', namespace: 'shop' }, type: 'Opaque', data: { password } })
}

function add(objects: DemoObjects, kind: ResourceKind, object: JsonObject): JsonObject {
  return objects.create(kind, object, 'portcullis-demo')
}

function addApplication(objects: DemoObjects, application: Application, scale: number): void {
  const { namespace, name, image, port } = application
  const labels = { app: name }
  const container = { name, image, ports: [{ containerPort: port, protocol: 'TCP' }] }
  const metadata = { name, namespace, labels }
  add(objects, DEMO_DEPLOYMENTS, {
    metadata,
    spec: {
      replicas: Math.max(1, Math.round(application.replicas * scale)),
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container] } },
    },
  })
  const ports = [{ port, protocol: 'TCP', targetPort: port }]
  add(objects, SERVICES, { metadata, spec: { selector: labels, ports } })
}

function addNode(objects: DemoObjects, name: string, number: number): void {
  const resources = { cpu: '8', memory: '32Gi', pods: '110' }
  const node = add(objects, DEMO_NODES, {
    metadata: { name, labels: { 'kubernetes.io/hostname': name, 'node-role.kubernetes.io/worker': '' } },
    spec: { podCIDR: `10.244.${number}.0/24` },
  })
  const time = metaTime(objects.now())
  const times = { lastHeartbeatTime: time, lastTransitionTime: time }
  const status = {
    capacity: resources,
    allocatable: resources,
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', ...times }],
    addresses: [{ type: 'InternalIP', address: `10.0.0.${number}` }],
    nodeInfo: { kubeletVersion: 'v1.36.0', osImage: 'demo', architecture: 'amd64', operatingSystem: 'linux' },
  }
  objects.update(DEMO_NODES, { ...node, status }, 'kubelet', 'status')
  add(objects, LEASES, {
    metadata: { name, namespace: LEASE_NAMESPACE },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: metaMicroTime(Date.now()) },
  })
}
