// Two real kube-apiservers on one etcd, which the gateway finds in EndpointSlices: one joins, one leaves and is then killed, under reads.
// They listen on loopback, which the API refuses in slices: an address of this machine leads to them.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { AddressInfo, Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { h2Connect } from '../harness/clients/h2-client.ts'
import { SteadyReads } from '../harness/clients/steady-reads.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { passage } from '../harness/servers/passage.ts'
import { waitFor } from '../harness/wait.ts'

const RBAC = join(import.meta.dirname, '../../deploy/rbac/endpoint-slices.yaml')
const PATH = '/api/v1/namespaces/default/configmaps'
const HOST = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ family, internal, address }) => family === 'IPv4' && !internal && !address.startsWith('169.254.'))?.address
const skip = HOST === undefined ? 'this machine has no IPv4 address but loopback' : false

let cluster: TestCluster
let gateway: InProcessGateway
const passages: Server[] = []
/** The URLs of the passages: `https://ADDRESS:PORT`. */
const urls: string[] = []

before(async () => {
  if (HOST === undefined) return
  // The test says where they are: both would enter the same address, with their own port.
  cluster = await startCluster({ apiservers: 2, extraApiserverFlags: ['--endpoint-reconciler-type=none'] })
  for (const { port } of cluster.apiservers) {
    const server = await passage(HOST, 0, port)
    passages.push(server)
    urls.push(`https://${HOST}:${(server.address() as AddressInfo).port}`)
  }
  await writeSlice(0, true)
  const object = upstreamClusterFor(cluster)
  const { servers, clientConfig } = object.spec
  gateway = await startInProcess(
    [
      {
        ...object,
        spec: {
          ...object.spec,
          servers: servers.slice(0, 1),
          clientConfig: { ...clientConfig, serverName: 'localhost' },
          followEndpointSlice: true,
          healthCheck: { intervalSeconds: 1 },
        },
      },
    ],
    { threads: 2 },
  )
})
after(async () => {
  await gateway?.stop()
  for (const server of passages) server.close()
  await cluster?.stop()
})

/** Each apiserver has a slice of its own, for it has a port of its own. */
async function writeSlice(apiserver: 0 | 1, ready: boolean): Promise<void> {
  await cluster.apply(
    JSON.stringify({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: `kubernetes-${apiserver}`,
        namespace: 'default',
        labels: { 'kubernetes.io/service-name': 'kubernetes' },
      },
      addressType: 'IPv4',
      ports: [{ name: 'https', port: Number(new URL(urls[apiserver] ?? '').port), protocol: 'TCP' }],
      endpoints: [{ addresses: [HOST], conditions: { ready, serving: true, terminating: !ready } }],
    }),
  )
}

/** The endpoints besides the server as written, all of them healthy. */
function inForce(...wanted: readonly string[]): Promise<true> {
  return waitFor(`the endpoints ${wanted}`, async () => {
    const text = await gateway.metrics()
    const all = [...text.matchAll(/^portcullis_endpoint_healthy\{.*endpoint="(.*)"\} (\d)$/gm)]
    const found = all.filter(([, url = '']) => urls.includes(url))
    return found.length === wanted.length && found.every(([, url = '', value]) => value === '1' && wanted.includes(url))
  })
}

test('an apiserver joins and is used, one leaves and is killed: no request fails', { skip }, async () => {
  const [first = '', second = ''] = urls
  // It lacks the right: the server as written serves, and the gateway says what to apply.
  await waitFor('the missing right', () => {
    return gateway.logged.some(({ fields }) => String(fields['why']).includes('apply deploy/rbac/endpoint-slices.yaml'))
  })
  await inForce()
  const client = { port: gateway.port, serverName: hostOf(cluster.name), certificate: cluster.admin.cert }
  const authority = `${hostOf(cluster.name)}:${gateway.port}`
  const reads = new SteadyReads(() => h2Connect(client), authority, [{ path: PATH }])
  const more = async (what: string): Promise<void> => {
    const { whole } = reads
    await waitFor(what, () => reads.whole > whole + 200)
  }
  try {
    reads.start()
    await more('reads through the server as written')
    await cluster.apply(readFileSync(RBAC, 'utf8'))
    await inForce(first)
    await more('reads')
    await writeSlice(1, true)
    await inForce(first, second)
    await more('reads at both')
    await writeSlice(0, false)
    await inForce(second)
    await more('reads at the second')
    await cluster.apiservers[0]?.kill()
    await more('reads without the first, which is also the server as written')
    await cluster.apiservers[0]?.restart()
    await writeSlice(0, true)
    await inForce(first, second)
  } finally {
    await reads.stop()
  }
  assert.deepEqual(reads.failures(), [])
})
