// The switch of many clusters in one gateway with its own API server, by the command that operators have. Counted, not timed.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { degradeMany, type ManySwitchOptions } from '../../src/incidents/cli/many.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { type EmbeddedGateway, startEmbedded, UC_PATH } from '../harness/gateways/embedded.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { answerWithoutNodes } from '../harness/upstreams/no-nodes.ts'
import { type Http1Stub, startHttp1Stub } from '../harness/upstreams/stub-http1.ts'

/** What fits on a screen. */
const MOST_LINES = 24
const SWITCH = { all: true, mode: 'ReadOnly', reason: 'INC-1', yes: true } as const
const clientCA = createCA({ commonName: 'clients' })
const alice = clientPair(clientCA, 'alice')
let stub: Http1Stub
let embedded: EmbeddedGateway

function named(at: number): UpstreamCluster {
  const region = at % 2 === 0 ? 'eu' : 'us'
  const object = clusterObject([], {
    name: `${region}-${at}.example.com`,
    clientCA,
    spec: { servers: [{ endpoint: stub.url }], clientConfig: {}, healthCheck: { intervalSeconds: 300 } },
  })
  return { ...object, metadata: { ...object.metadata, labels: { region } } }
}

async function create(t: TestContext, count: number): Promise<void> {
  // Without TLS: the leader watches the nodes of every cluster that is switched.
  stub = await startHttp1Stub({ plain: true })
  answerWithoutNodes(stub)
  t.after(() => stub.stop())
  embedded = await startEmbedded()
  t.after(() => embedded.stop())
  // Some at once: each connection is one of the administrator's.
  for (let first = 0; first < count; first += 20) {
    const answers = Array.from({ length: 20 }, (_, at) => embedded.admin.post(UC_PATH, named(first + at)))
    for (const { code, text } of await Promise.all(answers)) assert.equal(code, 201, text)
  }
}

interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

async function degrade(options: Partial<ManySwitchOptions>): Promise<Ran> {
  const printed: string[] = []
  const told: string[] = []
  const code = await degradeMany({
    clusters: [],
    status: false,
    kubeconfig: embedded.kubeconfig,
    // A busy machine is no failure.
    timeout: '5m',
    now: Date.now,
    out: (text) => void printed.push(text),
    err: (text) => void told.push(text),
    ...options,
  })
  return { code, stdout: printed.join(''), stderr: told.join('') }
}

/** How many clusters have this mode and as many changes. */
async function counted(): Promise<Record<string, number>> {
  const { json } = await embedded.admin.get(UC_PATH)
  const counts: Record<string, number> = {}
  for (const { spec, metadata } of (json as { items: UpstreamCluster[] }).items) {
    const key = `${spec.degrade?.mode ?? 'Off'} from ${spec.degrade?.before?.mode ?? '-'}, generation ${metadata.generation ?? 0}`
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

async function statusFor(host: string): Promise<number> {
  const session = h2Connect({ port: embedded.gateway.port, serverName: host, certificate: alice })
  const { status } = await h2Request(
    session,
    [':method', 'POST', ':authority', host, ':path', '/api/v1/namespaces/x/pods'],
    Buffer.from('{}'),
  )
  session.destroy()
  return status
}

for (const [count, title] of [
  [60, ''],
  [500, ' (long)'],
] as const) {
  test(
    `${count} clusters: one command sets all of them, says so in a few lines, and takes it back${title}`,
    PATIENT,
    async (t) => {
      await create(t, count)
      const all = await degrade(SWITCH)
      assert.deepEqual([all.code, all.stderr], [0, ''])
      assert.match(
        all.stdout,
        new RegExp(
          `^plan: degrade mode ReadOnly .*: ${count} UpstreamClusters \\(all there are\\), ${count} to change\n`,
        ),
      )
      assert.match(all.stdout, new RegExp(`\n${count} clusters: ${count} ReadOnly in force\n$`))
      assert.ok(all.stdout.split('\n').length <= MOST_LINES, all.stdout)
      assert.deepEqual(await counted(), { 'ReadOnly from Off, generation 2': count })
      for (const host of ['eu-0.example.com', `us-${count - 1}.example.com`]) assert.equal(await statusFor(host), 503)

      const again = await degrade(SWITCH)
      assert.equal(again.code, 0)
      assert.deepEqual(await counted(), { 'ReadOnly from Off, generation 2': count }, 'nothing is written twice')

      const back = await degrade({ selector: 'region=eu', mode: 'Off', yes: true })
      assert.equal(back.code, 0)
      const half = count / 2
      assert.deepEqual(await counted(), { 'Off from -, generation 3': half, 'ReadOnly from Off, generation 2': half })
      assert.equal(await statusFor('eu-0.example.com'), 200)

      const status = await degrade({ all: true, status: true })
      assert.equal(status.code, 0)
      assert.match(status.stdout, new RegExp(`^${count} clusters: ${count} in force on every replica \\(1\\), 0 not\n`))
      assert.ok(status.stdout.split('\n').length <= MOST_LINES, status.stdout)

      const recovered = await degrade({ clusters: ['us-*'], recover: true, yes: true })
      assert.deepEqual([recovered.code, recovered.stderr], [0, ''])
      assert.match(recovered.stdout, new RegExp(`\n${half} clusters: ${half} ReadOnly, on the way back, in force\n$`))
    },
  )
}
