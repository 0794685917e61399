// `kill -9` of real kube-apiservers under 500 reads a second of small objects, twenty times: no read fails, none is cut off.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, test } from 'node:test'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { killInTurns, type ReadTarget, SteadyReads } from '../harness/clients/steady-reads.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway } from '../harness/gateways/gateway.ts'

const KILLS = 5
/** Each with a gateway of its own: one endpoint that fails again and again gets traffic later each time, up to a minute. */
const ROUNDS = 4
const CONFIGMAPS = '/api/v1/namespaces/default/configmaps'
/** Bytes of text in the objects: with a length, without one in a single frame, in several. */
const SIZES = [300, 5_000, 30_000]

let cluster: TestCluster

before(async () => {
  cluster = await startCluster({ apiservers: 2 })
})
after(() => cluster?.stop())

for (let round = 1; round <= ROUNDS; round++) {
  test(`kills ${(round - 1) * KILLS + 1} to ${round * KILLS}: every answer is whole`, async (t) => {
    const gateway = await startGateway({
      clusters: [upstreamClusterFor(cluster, { spec: { healthCheck: { intervalSeconds: 1 } } })],
    })
    const authority = `${hostOf(cluster.name)}:${gateway.port}`
    const connect = () =>
      h2Connect({ port: gateway.port, serverName: hostOf(cluster.name), certificate: cluster.admin.cert })
    const session = connect()
    const reads = new SteadyReads(connect, authority, await createTargets(session, authority, round))
    t.after(async () => {
      session.destroy()
      await reads.stop()
      await gateway.stop()
    })
    reads.start()
    await killInTurns(cluster, gateway, reads, KILLS, (what) => t.diagnostic(`${new Date().toISOString()} ${what}`))
    await reads.stop()
    const metrics = (await gateway.metrics()).split('\n')
    const retried = metrics.filter((line) => line.startsWith('portcullis_upstream_retries_total{'))
    t.diagnostic(`${KILLS} kills, outcomes ${JSON.stringify([...reads.outcomes])}; ${retried.join('; ')}`)
    assert.deepEqual(reads.failures(), [])
  })
}

async function createTargets(session: ClientHttp2Session, authority: string, round: number): Promise<ReadTarget[]> {
  const targets: ReadTarget[] = []
  for (const size of SIZES) {
    const name = `round-${round}-of-${size}`
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name }, data: { text: 'x'.repeat(size) } }
    const head = [':method', 'POST', ':path', CONFIGMAPS, ':authority', authority, 'content-type', 'application/json']
    assert.equal((await h2Request(session, head, Buffer.from(JSON.stringify(object)))).status, 201)
    const path = `${CONFIGMAPS}/${name}`
    const { body } = await h2Request(session, [':path', path, ':authority', authority])
    targets.push({ path, size: body.length })
  }
  return targets
}
