// Connections that the gateway asks to end: KubeGateway's gate CloseConnectionWhenIdle, and certificates that never will count.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { FEATURE_GATES_ANNOTATION } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { kubeRequest } from '../harness/clusters/kube-request.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'

const clientCA = createCA({ commonName: 'clients' })
const strangers = createCA({ commonName: 'strangers' })
let stub: StubUpstream
let gateway: InProcessGateway

before(async () => {
  stub = await startStub()
  const gated = clusterObject([stub], { name: 'gated.example.com', clientCA })
  const annotations = { [FEATURE_GATES_ANNOTATION]: 'CloseConnectionWhenIdle=true' }
  gateway = await startInProcess([
    clusterObject([stub], { clientCA }),
    { ...gated, metadata: { ...gated.metadata, annotations } },
  ])
})
after(async () => {
  await gateway.stop()
  await stub.stop()
})

describe('CloseConnectionWhenIdle', () => {
  test('HTTP/2: the answer, and GOAWAY', async () => {
    const session = h2Connect({
      port: gateway.port,
      serverName: 'gated.example.com',
      certificate: clientPair(clientCA, 'a'),
    })
    const goaway = once(session, 'goaway')
    const answer = await h2Request(session, [':authority', 'gated.example.com'])
    assert.equal(answer.status, 200)
    assert.deepEqual((await goaway)[0], 0, 'NO_ERROR')
  })

  test('HTTP/1.1: Connection: close; not for a cluster without the gate', async () => {
    const ask = (serverName: string): ReturnType<typeof kubeRequest> => {
      const server = `https://127.0.0.1:${gateway.port}`
      return kubeRequest({
        server,
        path: '/api/v1/pods',
        serverName,
        headers: { connection: 'keep-alive', host: serverName },
      })
    }
    assert.equal((await ask('gated.example.com')).headers['connection'], 'close')
    assert.equal((await ask('prod.example.com')).headers['connection'], 'keep-alive')
  })
})

test('a certificate that the handshake did not verify: 401, and the connection ends; another one may count', async () => {
  const session = h2Connect({
    port: gateway.port,
    serverName: 'prod.example.com',
    certificate: clientPair(strangers, 'mallory'),
  })
  const goaway = once(session, 'goaway')
  assert.equal((await h2Request(session, [])).status, 401)
  await goaway
  gateway.apply([clusterObject([stub], { clientCA: strangers })])
  const again = h2Connect({
    port: gateway.port,
    serverName: 'prod.example.com',
    certificate: clientPair(strangers, 'mallory'),
  })
  assert.equal((await h2Request(again, [])).status, 200)
  again.destroy()
})
