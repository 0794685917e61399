// Two real kube-apiservers behind one DNS name: one leaves DNS and is then killed, under reads and a watch; it comes back.

import assert from 'node:assert/strict'
import type { Server } from 'node:net'
import { after, before, test } from 'node:test'
import { lookUp } from '../../src/gateway/io/dns/look-up.ts'
import { h2Connect, h2Open } from '../harness/clients/h2-client.ts'
import { SteadyReads } from '../harness/clients/steady-reads.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { freePorts } from '../harness/ports.ts'
import { type DnsServer, startDnsServer } from '../harness/servers/dns-server.ts'
import { passage } from '../harness/servers/passage.ts'
import { waitFor } from '../harness/wait.ts'

/** On one port, as the addresses of one name are. */
const ADDRESSES = ['127.0.0.2', '127.0.0.3'] as const
const PATH = '/api/v1/namespaces/default/configmaps'

let cluster: TestCluster
let dns: DnsServer
let gateway: InProcessGateway
const passages: Server[] = []

before(async () => {
  cluster = await startCluster({ apiservers: 2 })
  dns = await startDnsServer()
  const [port = 0] = await freePorts(1)
  for (const [i, apiserver] of cluster.apiservers.entries())
    passages.push(await passage(ADDRESSES[i] ?? '', port, apiserver.port))
  dns.answer = { addresses: ADDRESSES, ttl: 1 }
  const servers = [{ endpoint: `https://localhost:${port}`, resolve: true }]
  const object = upstreamClusterFor(cluster, { spec: { servers, healthCheck: { intervalSeconds: 1 } } })
  gateway = await startInProcess([object], { threads: 2 }, Promise.resolve(), {
    lookUp: (name) => lookUp(name, { servers: [dns.address], hostsFile: '/dev/null', hasIPv6: false }),
  })
})
after(async () => {
  await gateway?.stop()
  for (const server of passages) server.close()
  await dns?.stop()
  await cluster?.stop()
})

function inForce(...addresses: readonly string[]): Promise<true> {
  return waitFor(`the endpoints ${addresses}`, async () => {
    const text = await gateway.metrics()
    const all = [...text.matchAll(/^portcullis_endpoint_healthy\{.*https:\/\/(.*):\d+"\} (\d)$/gm)]
    const healthy = new Set(all.filter(([, , value]) => value === '1').map(([, host]) => host))
    return all.length === addresses.length && addresses.every((address) => healthy.has(address))
  })
}

test('an apiserver that leaves DNS is drained before it dies: no request fails, the watch ends in order', async () => {
  await inForce(...ADDRESSES)
  const client = { port: gateway.port, serverName: hostOf(cluster.name), certificate: cluster.admin.cert }
  const authority = `${hostOf(cluster.name)}:${gateway.port}`
  const reads = new SteadyReads(() => h2Connect(client), authority, [{ path: PATH }])
  const session = h2Connect(client)
  // Enough that each apiserver has some.
  const codes: number[] = []
  let ended = 0
  const watches = Array.from({ length: 8 }, () => {
    const stream = h2Open(session, [':path', `${PATH}?watch=1`, ':authority', authority])
    stream.resume().once('close', () => codes.push(stream.rstCode))
    stream.once('end', () => void ended++)
    return stream
  })
  try {
    reads.start()
    await waitFor('reads', () => reads.whole > 200)
    const [stays, leaves] = ADDRESSES
    dns.answer = { addresses: [stays], ttl: 1 }
    await inForce(stays)
    await waitFor('the end of the watches there', () => ended > 0)
    await cluster.apiservers[1]?.kill()
    const before = reads.whole
    await waitFor('reads without it', () => reads.whole > before + 500)
    assert.deepEqual([...new Set(codes)], [0])
    assert.ok(ended < watches.length, 'watches at the other apiserver go on')
    await cluster.apiservers[1]?.restart()
    dns.answer = { addresses: [stays, leaves], ttl: 1 }
    await inForce(stays, leaves)
  } finally {
    await reads.stop()
    session.destroy()
  }
  assert.deepEqual(reads.failures(), [])
})
