// A fake of a metrics adapter (no real one runs here) behind a real kube-apiserver: it answers for the custom metrics API with values that a
// test sets. The apiserver authorizes requests and forwards them, as to any aggregated API server.

import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { gatewayCA, serverCertificate } from '../pki.ts'
import { waitFor } from '../wait.ts'
import type { TestCluster } from './cluster.ts'

const GROUP = 'custom.metrics.k8s.io'
const VERSION = 'v1beta2'

export interface FakeMetrics {
  /** Of each pod, by name: a quantity. */
  readonly values: Map<string, string>
  /** Targets of all requests for values, as they came. */
  readonly asked: string[]
  stop(): Promise<void>
}

/** Ready when the cluster serves it. */
export async function startFakeMetrics(cluster: TestCluster): Promise<FakeMetrics> {
  const values = new Map<string, string>()
  const asked: string[] = []
  // The name by which an apiserver knows the backend of an aggregated API, whatever it dials.
  const { certPem, keyPem } = serverCertificate(gatewayCA(), ['fake-metrics.default.svc'], [])
  const server = createServer({ cert: certPem, key: keyPem }, ({ url = '' }, response) => {
    const isList = url.includes('/pods/')
    if (isList) asked.push(url)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(isList ? valueList(values) : resources()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  await register(cluster, (server.address() as AddressInfo).port)
  const stop = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  await waitFor('the custom metrics API', async () => {
    return (await cluster.request(`/apis/${GROUP}/${VERSION}`)).status === 200
  }).catch(async (error: unknown) => {
    await stop()
    throw error
  })
  return { values, asked, stop }
}

/** An apiserver dials the name of an ExternalName Service; addresses of endpoints may not be loopback ones. */
async function register(cluster: TestCluster, port: number): Promise<void> {
  const service = { name: 'fake-metrics', namespace: 'default' }
  const spec = { group: GROUP, version: VERSION, groupPriorityMinimum: 100, versionPriority: 100 }
  const objects: readonly (readonly [string, object])[] = [
    [
      '/api/v1/namespaces/default/services',
      { kind: 'Service', metadata: service, spec: { type: 'ExternalName', externalName: 'localhost' } },
    ],
    [
      '/apis/apiregistration.k8s.io/v1/apiservices',
      {
        kind: 'APIService',
        apiVersion: 'apiregistration.k8s.io/v1',
        metadata: { name: `${VERSION}.${GROUP}` },
        spec: { ...spec, service: { ...service, port }, caBundle: caBundle() },
      },
    ],
  ]
  for (const [path, body] of objects) {
    const answer = await cluster.request(path, { method: 'POST', body })
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
  }
}

function caBundle(): string {
  return Buffer.from(gatewayCA().certPem).toString('base64')
}

function valueList(values: ReadonlyMap<string, string>): object {
  const items = [...values].map(([name, value]) => ({
    describedObject: { kind: 'Pod', namespace: 'default', name, apiVersion: '/v1' },
    metric: { name: 'http_connections', selector: null },
    timestamp: new Date().toISOString(),
    value,
  }))
  return { kind: 'MetricValueList', apiVersion: `${GROUP}/${VERSION}`, metadata: {}, items }
}

function resources(): object {
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: `${GROUP}/${VERSION}`, resources: [] }
}
