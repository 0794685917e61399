// What an endpoint answers to the gateway's own reads for a deletion of pods: whatever it sends, and however, only so much of it is read, held and
// parsed on a thread that serves other clusters, too.

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { OBJECT, PAGE } from '../../src/kube/core/answers/answer-limits.ts'
import { threadAnswers } from '../../src/kube/io/answers/thread-answers.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request, type Response } from '../harness/clients/h2-client.ts'
import { admitted, type GuardedGateway, startGuardedGateway } from '../harness/gateways/guarded-gateway.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type PodUpstream, startPodUpstream } from '../harness/upstreams/pod-upstream.ts'
import { reply, type SeenRequest } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const PODS = '/api/v1/namespaces/default/pods'
const MIB = 1024 * 1024
/** What the windows of HTTP/2 and sockets hold of an answer that is not read on. */
const UNDERWAY = 8 * MIB

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  assert.equal(heldNow(), 0)
})

interface Scene extends GuardedGateway {
  readonly upstream: PodUpstream
  /** Bytes of answers that were written. */
  sent(): number
  send(method: string, path: string): Promise<Response>
}

async function setUp(): Promise<Scene> {
  const upstream = await startPodUpstream({})
  const spec = { podProtection: { failurePolicy: 'Ignore' as const } }
  const gateway = await startGuardedGateway(clusterObject([upstream.stub], { clientCA, spec }))
  const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
  cleanups.push(upstream.stub.stop, gateway.stop, () => session.destroy())
  gateway.gate.judge = admitted
  const sent = (): number => upstream.stub.sessions().reduce((sum, { socket }) => sum + (socket?.bytesWritten ?? 0), 0)
  return { ...gateway, upstream, sent, send: (method, path) => h2Request(session, [':method', method, ':path', path]) }
}

function heldNow(): number {
  return threadAnswers.known.held + threadAnswers.unknown.held
}

function messageOf({ body }: Response): string {
  return String((JSON.parse(String(body)) as Record<string, unknown>)['message'])
}

/** As fast as it is taken, until it is reset. */
function pour({ stream }: SeenRequest, status: number, chunk: Buffer, most = Number.POSITIVE_INFINITY): void {
  let left = most
  const write = (): void => {
    while (left > 0 && !stream.destroyed) {
      left -= chunk.length
      if (!stream.write(chunk)) return
    }
    if (!stream.destroyed) stream.end()
  }
  stream.on('error', () => undefined)
  stream.respond([':status', String(status), 'content-type', 'application/json'])
  stream.on('drain', write)
  write()
}

test('an answer that never ends is given up at its limit, whatever its code', async () => {
  for (const [status, message] of [
    [200, /the answer has more than 10485760 bytes, which is the limit$/],
    [403, /the pod cannot be read: the gateway may not \(403\)/],
  ] as const) {
    const scene = await setUp()
    scene.upstream.add('a')
    scene.upstream.answerRead = (request) => {
      pour(request, status, Buffer.alloc(64 * 1024, '['))
      return true
    }
    const answer = await scene.send('DELETE', `${PODS}/a`)
    if (status === 200) assert.match(messageOf(answer), message)
    assert.ok(scene.sent() <= (status === 200 ? OBJECT.bytes : 0) + UNDERWAY, `${status}: ${scene.sent()}`)
    assert.equal(heldNow(), 0)
  }
})

test('100 MiB of small values are neither read nor parsed', async () => {
  const scene = await setUp()
  scene.upstream.add('a')
  let asked = 0
  scene.upstream.answerRead = (request) => {
    asked++
    pour(request, 200, Buffer.from('{},'.repeat(20_000)), 100 * MIB)
    return true
  }
  const answer = await scene.send('DELETE', PODS)
  assert.equal(answer.status, 503, String(answer.body))
  // Half as many each time, from 200 down to 1.
  assert.equal(asked, 8)
  assert.ok(scene.sent() <= 7 * (PAGE.bytes + UNDERWAY) + OBJECT.bytes + UNDERWAY, String(scene.sent()))
  assert.deepEqual([...scene.upstream.pods.keys()], ['a'])
})

test('nothing is parsed that has more values, different keys or levels than a turn has time for', async () => {
  const keys = Array.from({ length: 100_000 }, (_, i) => `"${i}":1`).join(',')
  for (const [text, excess] of [
    ['{},'.repeat(600_000), /the answer has more than \d+ values/],
    [`{${keys}},`, /the answer has more than \d+ different keys/],
    [`${'['.repeat(100_000)}${']'.repeat(100_000)},`, /the answer has more than \d+ levels/],
  ] as const) {
    const scene = await setUp()
    scene.upstream.add('a')
    scene.upstream.answerRead = (request) => {
      reply(request, 200, `{"items":[],"metadata":{},"x":[${text}0]}`)
      return true
    }
    for (const path of [PODS, `${PODS}/a`]) {
      const answer = await scene.send('DELETE', path)
      assert.equal(answer.status, 503)
      assert.match(messageOf(answer), excess)
    }
    assert.equal(scene.upstream.writes.length, 0)
  }
})

test('a compressed answer is refused, before anything of it is unpacked', async () => {
  const scene = await setUp()
  scene.upstream.add('a')
  const bomb = gzipSync(Buffer.alloc(32 * MIB, ' '))
  scene.upstream.answerRead = ({ stream }) => {
    stream.respond([':status', '200', 'content-type', 'application/json', 'content-encoding', 'gzip'])
    stream.end(bomb)
    return true
  }
  await scene.send('DELETE', `${PODS}/a`)
  assert.equal(scene.gate.asked.length, 0)
})

test('pages without an end, and pages without pods, end', async () => {
  const scene = await setUp()
  scene.upstream.add('a')
  const labels = { a: 'x'.repeat(MIB) }
  scene.upstream.answerRead = (request) => {
    const items = [{ metadata: { name: 'a', namespace: 'default', uid: 'u', resourceVersion: '1', labels } }]
    reply(request, 200, JSON.stringify({ kind: 'PodList', metadata: { continue: 'more' }, items }))
    return true
  }
  const answer = await scene.send('DELETE', PODS)
  assert.equal(answer.status, 429)
  assert.match(messageOf(answer), /user "alice" of cluster "prod\.example\.com".*bytes of upstream's answers/)
  assert.equal(scene.upstream.writes.length, 0)
})

test('collections at once hold no more than there is for answers, and nothing of it stays', async () => {
  const scene = await setUp()
  scene.upstream.add('a')
  const { known } = threadAnswers
  const other = { source: 'another user', weight: 1, known: true }
  const taken = known.capacity - 4 * MIB
  assert.equal(threadAnswers.take(other, taken), 'taken')
  cleanups.push(() => threadAnswers.give(other, taken))
  const held: SeenRequest[] = []
  let refused = 0
  let highest = 0
  scene.upstream.answerRead = (request) => {
    const { stream } = request
    stream.on('error', () => undefined)
    stream.respond([':status', '200', 'content-type', 'application/json'])
    stream.write(`{"kind":"PodList","metadata":{},"items":[],"x":"${'x'.repeat(1.9 * MIB)}`)
    if (refused > 0) stream.end('"}')
    else held.push(request)
    return true
  }
  const answers = Array.from({ length: 30 }, async () => {
    const { status } = await scene.send('DELETE', PODS)
    if (status === 429) refused++
    return status
  })
  await waitFor('no room', () => {
    highest = Math.max(highest, heldNow())
    return refused > 0
  })
  for (const { stream } of held) if (!stream.destroyed) stream.end('"}')
  assert.ok((await Promise.all(answers)).includes(429))
  assert.ok(highest <= known.capacity + known.reserve, String(highest))
})
