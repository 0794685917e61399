// The attacks that reach an upstream, on a real kube-apiserver: Go ends a connection whose peer sends too large a head, or resets too often, and
// a connection carries the requests of many users. Nothing of another user ends, and no connection to it breaks.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, test } from 'node:test'
import { Attacker } from '../attacks/attacker.ts'
import { loadCorpus } from '../attacks/corpus.ts'
import { h2Connect, h2Open, h2Request } from '../harness/clients/h2-client.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { clientPair } from '../harness/objects/objects.ts'

const CONFIGMAPS = '/api/v1/namespaces/default/configmaps'
/** Watches of the other user: each list has some megabytes. */
const WATCHES = 40
const LISTS_AT_ONCE = 5
const LISTS = 15
const OBJECTS = 40
const OBJECT_BYTES = 100_000
/** Aimed at ports that this gateway does not open, or of which upstream sees nothing. */
const ELSEWHERE = /^(control|admin|webhook|tls|proxied)-/
/** What is logged of a connection to an endpoint that ended with requests on it; one that was never opened, on a busy machine, had none. */
const BROKEN = /^(?!.*"error":"connect timed out").*"msg":"connection to endpoint broke"/

const corpus = await loadCorpus()
let cluster: TestCluster
let gateway: TestGateway
let attacker: Attacker
let session: ClientHttp2Session
let endedWatches = 0

before(async () => {
  cluster = await startCluster()
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster)] })
  attacker = await Attacker.start()
  session = connect()
  const body = (i: number): Buffer => {
    const metadata = { name: `large-${i}` }
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata, data: { text: 'x'.repeat(OBJECT_BYTES) } }
    return Buffer.from(JSON.stringify(object))
  }
  for (let i = 0; i < OBJECTS; i++) {
    const head = [':method', 'POST', ':path', CONFIGMAPS, ...authority(), 'content-type', 'application/json']
    assert.equal((await h2Request(session, head, body(i))).status, 201)
  }
  for (let i = 0; i < WATCHES; i++) {
    const watch = h2Open(session, [':path', `${CONFIGMAPS}?watch=true&resourceVersion=0`, ...authority()])
    watch.on('close', () => endedWatches++)
    watch.resume()
    await new Promise((resolve) => watch.once('response', resolve))
  }
})
after(async () => {
  attacker?.end()
  session?.destroy()
  await gateway?.stop()
  await cluster?.stop()
})

function authority(): string[] {
  return [':authority', `${hostOf(cluster.name)}:${gateway.port}`]
}

function connect(): ClientHttp2Session {
  return h2Connect({ port: gateway.port, serverName: hostOf(cluster.name), certificate: cluster.admin.cert })
}

/** Lists, some of them always running. */
async function lists(): Promise<void> {
  let left = LISTS
  const one = async (): Promise<void> => {
    while (left-- > 0) {
      const { status, resetCode, body } = await h2Request(session, [':path', CONFIGMAPS, ...authority()])
      assert.deepEqual({ status, resetCode }, { status: 200, resetCode: 0 }, body.toString().slice(0, 500))
      assert.ok(body.length > OBJECTS * OBJECT_BYTES, 'the list is whole')
    }
  }
  await Promise.all(Array.from({ length: LISTS_AT_ONCE }, one))
}

for (const [name, attack] of corpus) {
  if (ELSEWHERE.test(name)) continue
  for (const who of attack.who) {
    test(`${name}, ${who}: lists and watches of another user go on`, async (t) => {
      const logged = gateway.logs().length
      const keys = cluster.admin.cert
      await attacker.begin(name, {
        host: hostOf(cluster.name),
        port: gateway.port,
        controlPort: 0,
        webhookPort: 0,
        adminPort: gateway.adminPort,
        address: '127.0.0.2',
        network: 64,
        proxied: { host: '127.0.0.1', balancer: '127.0.0.2' },
        who,
        // No rights at all.
        certificate: who === 'known' ? clientPair(cluster.clientCA, 'attacker') : undefined,
        control: { roleless: keys, viewer: keys, editor: keys },
        secrets: [],
      })
      try {
        await lists()
      } finally {
        const outcome = await attacker.stop()
        t.diagnostic(JSON.stringify(outcome))
        assert.equal(outcome.error, '')
      }
      assert.equal(endedWatches, 0, 'watches of the other user')
      const broken = gateway
        .logs()
        .slice(logged)
        .split('\n')
        .filter((line) => BROKEN.test(line))
      assert.deepEqual(broken, [])
    })
  }
}
