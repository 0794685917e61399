// Degrade modes NoDisruption and Limited: a user without the right to remove anything neither uses up the rate that all share nor holds
// up a recovery.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, test } from 'node:test'
import type { Degrade } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type GuardedGateway, startGuardedGateway } from '../harness/gateways/guarded-gateway.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { replyReview, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const ATTEMPTS = 20

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene extends GuardedGateway {
  readonly stub: StubUpstream
  /** Reviews of mallory, who may do nothing. */
  readonly denied: () => number
  remove(user: 'mallory' | 'bob', name: string, body?: string): Promise<Response>
}

async function setUp(degrade: Degrade): Promise<Scene> {
  const stub = await startStub()
  const gateway = await startGuardedGateway(clusterObject([stub], { clientCA, spec: { degrade } }))
  const connect = (user: string): ClientHttp2Session => {
    const certificate = clientPair(clientCA, user)
    return h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate })
  }
  const sessions = { mallory: connect('mallory'), bob: connect('bob') }
  cleanups.push(stub.stop, gateway.stop, () => {
    for (const session of Object.values(sessions)) session.destroy()
  })
  let denied = 0
  stub.answerAccess = (seen) => {
    const allowed = seen.spec['user'] === 'bob'
    if (!allowed) denied++
    replyReview(seen, { allowed })
  }
  return {
    ...gateway,
    stub,
    denied: () => denied,
    remove: (user, name, body) => {
      const head = [':method', 'DELETE', ':path', `/api/v1/namespaces/shop/pods/${name}`]
      return h2Request(sessions[user], head, body === undefined ? undefined : Buffer.from(body))
    },
  }
}

for (const body of [undefined, '{"gracePeriodSeconds":0}']) {
  const how = body === undefined ? 'without a body' : 'with one'

  test(`Limited, a DELETE ${how}: who may not takes nothing of the rate`, async () => {
    const scene = await setUp({ mode: 'Limited', limited: { startQPS: 1, endQPS: 1 } })
    for (let at = 0; at < ATTEMPTS; at++) {
      const answer = await scene.remove('mallory', `p${at}`, body)
      assert.equal(answer.status, 403, answer.body.toString())
      assert.match(answer.body.toString(), /cannot delete resource/)
    }
    assert.equal(scene.stub.seen.length, 0)
    const answer = await scene.remove('bob', 'p', body)
    assert.deepEqual([answer.status, scene.stub.seen.length], [200, 1])
    assert.equal(scene.refusedDisruptive('prod.example.com'), 0)
  })

  test(`NoDisruption, a DELETE ${how}: all are refused alike, and only those who may hold up a recovery`, async () => {
    const scene = await setUp({ mode: 'NoDisruption' })
    for (let at = 0; at < ATTEMPTS; at++) {
      const answer = await scene.remove('mallory', `p${at}`, body)
      assert.equal(answer.status, 403)
      assert.match(answer.body.toString(), /is in degrade mode NoDisruption/)
      assert.deepEqual(valuesOf(answer.head, 'retry-after'), [])
    }
    await waitFor('the reviews', () => scene.denied() >= ATTEMPTS)
    assert.equal((await scene.remove('bob', 'p', body)).status, 403)
    assert.equal(await waitFor('bob to count', () => scene.refusedDisruptive('prod.example.com') || undefined), 1)
    assert.equal(scene.stub.seen.length, 0)
  })
}
