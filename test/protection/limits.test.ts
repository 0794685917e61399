// Deletions of protected pods at limits of the gateway's own: refused whatever the failure policy says, and each counted for its user.

import assert from 'node:assert/strict'
import { afterEach, describe, mock, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { systemClock } from '../../src/kit/io/world/clock.ts'
import { OBJECT, PAGE } from '../../src/kube/core/answers/answer-limits.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { admitted, type GuardedGateway, refused, startGuardedGateway } from '../harness/gateways/guarded-gateway.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type PodUpstream, startPodUpstream, statusOf } from '../harness/upstreams/pod-upstream.ts'
import { reply } from '../harness/upstreams/stub-upstream.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const PODS = '/api/v1/namespaces/default/pods'
const MIB = 1024 * 1024

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene extends GuardedGateway {
  readonly upstream: PodUpstream
  send(method: string, path: string, fields?: readonly string[]): Promise<Response>
}

async function setUp(spec: Partial<UpstreamClusterSpec>, maxHeaderListSize?: number): Promise<Scene> {
  const upstream = await startPodUpstream(maxHeaderListSize === undefined ? {} : { maxHeaderListSize })
  const gateway = await startGuardedGateway(clusterObject([upstream.stub], { clientCA, spec }))
  const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
  cleanups.push(upstream.stub.stop, gateway.stop, () => session.destroy())
  const send: Scene['send'] = (method, path, fields = []) => {
    const body = method === 'POST' ? Buffer.from('{}') : undefined
    return h2Request(session, [':method', method, ':path', path, ...fields], body)
  }
  return { ...gateway, upstream, send }
}

function messageOf({ body }: Response): string {
  return String((JSON.parse(String(body)) as Record<string, unknown>)['message'])
}

describe('clientConfig.qps', () => {
  /** So many reads of pods, and none after them: the clock stands. */
  async function someReads(burst: number, failurePolicy: 'Fail' | 'Ignore', shadow = false): Promise<Scene> {
    const scene = await setUp({
      podProtection: { failurePolicy, shadow, timeoutSeconds: 1 },
      clientConfig: { bearerToken: base64('gateway-token'), insecure: true, qps: 1, burst },
    })
    const atMs = systemClock.monotonic()
    const clock = mock.method(systemClock, 'monotonic', () => atMs)
    cleanups.push(() => clock.mock.restore())
    for (const name of ['a', 'b']) scene.upstream.add(name)
    return scene
  }

  for (const failurePolicy of ['Fail', 'Ignore'] as const) {
    test(`with ${failurePolicy}: 429 until there is a turn, and nothing is deleted`, async () => {
      const scene = await someReads(3, failurePolicy)
      // The reviews of rights have turns of their own: as many as there are verbs below.
      for (const code of [200, 404, 404]) assert.equal((await scene.send('DELETE', `${PODS}/a`)).status, code)
      for (const [method, path] of [
        ['DELETE', `${PODS}/b`],
        ['DELETE', PODS],
        ['POST', `${PODS}/b/eviction`],
      ] as const) {
        const answer = await scene.send(method, path)
        assert.equal(answer.status, 429, `${method} ${path}: ${answer.body}`)
        assert.match(valuesOf(answer.head, 'retry-after').join(), /^[1-4]$/)
        // The share is that of the user, not of all deletions.
        assert.match(
          messageOf(answer),
          /^too many reads of pods for cluster "prod\.example\.com" because of user "alice" of cluster "prod\.example\.com": /,
        )
      }
      assert.deepEqual([...scene.upstream.pods.keys()], ['b'])
    })

    test(`a pod of a collection that has to be read again, with ${failurePolicy}`, async () => {
      const scene = await someReads(1, failurePolicy)
      scene.gate.judge = (request) => ({ ...admitted(request), freePass: true })
      scene.upstream.answerWrite = ({ request }) => {
        reply(request, 409, JSON.stringify(statusOf(409, 'Conflict')))
        return true
      }
      const answer = await scene.send('DELETE', PODS)
      assert.equal(answer.status, 429)
      assert.match(valuesOf(answer.head, 'retry-after').join(), /^[1-4]$/)
      assert.match(messageOf(answer), /^0 of 2 pods were deleted, 2 must stay: .*too many reads of pods/)
      assert.equal(scene.upstream.writes.length, 2)
    })
  }

  test('in shadow nothing is refused', async () => {
    const scene = await someReads(1, 'Fail', true)
    assert.equal((await scene.send('DELETE', `${PODS}/a`)).status, 200)
    const answer = await scene.send('DELETE', `${PODS}/b`)
    assert.equal(answer.status, 200)
    assert.match(valuesOf(answer.head, 'warning').join(), /in shadow mode would refuse/)
  })
})

describe('sizes', () => {
  test('a pod of more than 3 MiB of JSON is evaluated like any other, alone and in a collection', async () => {
    const scene = await setUp({ podProtection: { failurePolicy: 'Ignore' } })
    scene.upstream.add('large', { annotations: { text: 'x'.repeat(4 * MIB) } })
    scene.gate.judge = (request) => refused(request)
    assert.equal((await scene.send('DELETE', `${PODS}/large`)).status, 429)
    scene.gate.judge = admitted
    const answer = await scene.send('DELETE', PODS)
    assert.equal(answer.status, 200)
    assert.ok(Number(answer.body?.length) > 4 * MIB)
    assert.equal(scene.gate.released.length, 0)
  })

  for (const failurePolicy of ['Fail', 'Ignore'] as const) {
    test(`one that cannot be read is not deleted, with ${failurePolicy} either`, async () => {
      const scene = await setUp({ podProtection: { failurePolicy } })
      scene.upstream.add('a')
      scene.upstream.answerRead = (request) => {
        reply(request, 200, ' '.repeat(OBJECT.bytes + 1))
        return true
      }
      const answer = await scene.send('DELETE', `${PODS}/a`)
      assert.equal(answer.status, 503)
      assert.match(
        messageOf(answer),
        /the pod cannot be read: the answer has more than 10485760 bytes, which is the limit$/,
      )
      // No other endpoint would say anything else.
      assert.equal(scene.upstream.reads.length, 1)
      assert.equal((await scene.send('POST', `${PODS}/a/eviction`)).status, 429)
      assert.equal(scene.upstream.writes.length, 0)
    })
  }

  test('a page of pods that is too large is asked for again by halves', async () => {
    const scene = await setUp({ podProtection: { failurePolicy: 'Ignore' } })
    for (let i = 0; i < 100; i++) scene.upstream.add(`p${i}`)
    const sizes: number[] = []
    scene.upstream.answerRead = (request) => {
      const size = Number(new URL(request.path, 'https://stub').searchParams.get('limit'))
      sizes.push(size)
      if (size <= 50) return false
      reply(request, 200, ' '.repeat(PAGE.bytes + 1))
      return true
    }
    assert.equal((await scene.send('DELETE', PODS)).status, 200)
    assert.deepEqual(sizes, [200, 100, 50, 50])
    assert.deepEqual([scene.gate.asked.flat().length, scene.upstream.pods.size], [100, 0])
  })
})

test('a head that is larger than upstream takes: 431, and what was reserved for the collection is given back', async () => {
  const scene = await setUp({ podProtection: {} }, 30_000)
  for (const name of ['a', 'b', 'c']) scene.upstream.add(name)
  for (const path of [`${PODS}/a`, PODS]) {
    const answer = await scene.send('DELETE', path, ['x-long', 'y'.repeat(40_000)])
    assert.equal(answer.status, 431, String(answer.body))
    assert.match(messageOf(answer), /larger than the 30000 bytes that cluster "prod\.example\.com" accepts/)
  }
  assert.equal(scene.upstream.writes.length, 0)
  assert.deepEqual(scene.gate.released.map(({ uid }) => uid).sort(), ['uid-a', 'uid-a', 'uid-b', 'uid-c'])
})
