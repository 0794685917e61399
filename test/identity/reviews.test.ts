// Token and access reviews that a client without rights makes the gateway send: few, in turns with all other clients, and never at the
// cost of what others need.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { describe, type TestContext, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { MAX_CALLS_IN_FLIGHT } from '../../src/gateway/core/limits/call-turns.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { replyReview, type SeenReview, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const ATTACKER = '127.0.0.2'
const OTHER = '127.0.0.3'
const clientCA = createCA({ commonName: 'clients' })
const GROUPS = Array.from({ length: 255 }, (_, i) => ['impersonate-group', `group-${i}`]).flat()

interface World {
  readonly stub: StubUpstream
  readonly gateway: InProcessGateway
  connect(localAddress: string, user?: string): ClientHttp2Session
}

async function setUp(t: TestContext, spec: Partial<UpstreamClusterSpec> = {}): Promise<World> {
  const stub = await startStub()
  stub.answerAccess = (review) => replyReview(review, { allowed: false })
  const gateway = await startInProcess([clusterObject([stub], { clientCA, spec })])
  const sessions: ClientHttp2Session[] = []
  t.after(async () => {
    for (const session of sessions) session.destroy()
    await gateway.stop()
    await stub.stop()
  })
  const connect = (localAddress: string, user?: string): ClientHttp2Session => {
    const certificate = user === undefined ? {} : { certificate: clientPair(clientCA, user) }
    const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', localAddress, ...certificate })
    sessions.push(session)
    return session
  }
  const warm = connect(OTHER)
  await waitFor('the endpoint', async () => (await h2Request(warm, [])).status === 200)
  return { stub, gateway, connect }
}

function limited(qps: number): Partial<UpstreamClusterSpec> {
  return { clientConfig: { bearerToken: base64('gateway-token'), insecure: true, qps, burst: qps } }
}

const statusesOf = (answers: readonly Response[]): number[] => answers.map(({ status }) => status)
const attributesOf = ({ spec }: SeenReview): Record<string, string> =>
  spec['resourceAttributes'] as Record<string, string>

async function metric(gateway: InProcessGateway, line: string): Promise<number> {
  const found = (await gateway.metrics()).split('\n').find((each) => each.startsWith(line))
  return Number(found?.slice(found.lastIndexOf(' ') + 1) ?? 0)
}

describe('impersonation', () => {
  test('20 anonymous requests with 255 groups each: one review, and a new token is checked at once', async (t) => {
    const { stub, connect } = await setUp(t, limited(5))
    const attacker = connect(ATTACKER)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => h2Request(attacker, ['impersonate-user', `user-${i}`, ...GROUPS])),
    )
    assert.deepEqual(new Set(statusesOf(answers)), new Set([403]))
    assert.match(answers[7]?.body.toString() ?? '', /cannot impersonate resource \\"users\\"/)
    assert.match(answers[7]?.body.toString() ?? '', /user-7/)
    assert.deepEqual(stub.reviews.map(attributesOf), [
      { verb: 'impersonate', group: '', resource: 'users', subresource: '', namespace: '', name: '' },
    ])
    stub.tokens.set('new', { username: 'carol' })
    assert.equal((await h2Request(connect(OTHER), ['authorization', 'Bearer new'])).status, 200)
  })

  test('a user without the right has one review made for each request, for the user that he names', async (t) => {
    const { stub, connect } = await setUp(t)
    const alice = connect(ATTACKER, 'alice')
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => h2Request(alice, ['impersonate-user', `user-${i}`, ...GROUPS])),
    )
    assert.deepEqual(new Set(statusesOf(answers)), new Set([403]))
    assert.equal(stub.reviews.length, 20)
    assert.ok(stub.reviews.every((review) => attributesOf(review)['resource'] === 'users'))
  })

  test('the first no is the last question', async (t) => {
    const { stub, connect } = await setUp(t)
    stub.answerAccess = (review) => replyReview(review, { allowed: attributesOf(review)['name'] !== 'group-2' })
    const answer = await h2Request(connect(OTHER, 'alice'), ['impersonate-user', 'bob', ...GROUPS])
    assert.equal(answer.status, 403)
    assert.deepEqual(
      stub.reviews.map((review) => attributesOf(review)['name']),
      ['bob', 'group-0', 'group-1', 'group-2'],
    )
    assert.equal(stub.seen.length, 1, 'only what set the test up was forwarded')
  })

  test('one at a time, and none for a client that has gone', async (t) => {
    const { stub, connect } = await setUp(t)
    const held: SeenReview[] = []
    stub.answerAccess = (review) => void held.push(review)
    const alice = connect(OTHER, 'alice')
    void h2Request(alice, ['impersonate-user', 'bob', ...GROUPS])
    const [first] = await waitFor('the first review', () => held.length > 0 && held)
    await h2Request(connect(OTHER), [])
    assert.equal(held.length, 1)
    alice.destroy()
    stub.answerAccess = (review) => replyReview(review, { allowed: true })
    if (first !== undefined) replyReview(first, { allowed: true })
    const again = connect(OTHER, 'dave')
    assert.equal((await h2Request(again, ['impersonate-user', 'erin'])).status, 200)
    const asked = stub.reviews.filter(({ spec }) => spec['user'] === 'alice')
    assert.ok(asked.length <= 2, `${asked.length} reviews for a client that has gone`)
  })
})

describe('tokens that are made up', () => {
  test('at a rate: a client that makes them up waits for its turn, the next address does not wait for it', async (t) => {
    const { stub, gateway, connect } = await setUp(t, limited(5))
    const attacker = connect(ATTACKER)
    const answers: Response[] = []
    for (let i = 0; i < 200; i++) {
      void h2Request(attacker, ['authorization', `Bearer made-up-${i}`]).then((answer) => answers.push(answer))
    }
    // What cannot have its turn in eight seconds is refused at once: on a quick machine all but the burst of 5 and the 40 that wait.
    await waitFor('refusals', () => answers.filter(({ status }) => status === 429).length >= 100)
    stub.tokens.set('good', { username: 'carol' })
    assert.equal((await h2Request(connect(OTHER), ['authorization', 'Bearer good'])).status, 200)
    const refused = answers.filter(({ status }) => status === 429)
    for (const { head, body } of refused) {
      assert.match(
        body.toString(),
        /too many token reviews .*address 127\.0\.0\.2: the rate of spec\.clientConfig\.qps .*retry in/,
      )
      assert.ok(Number(valuesOf(head, 'retry-after')[0]) >= 1)
    }
    const counted =
      'portcullis_refusals_total{cluster="prod.example.com",reason="too-many-reviews",rule="token-review"}'
    assert.ok((await metric(gateway, counted)) >= refused.length)
    const sent = await metric(gateway, 'portcullis_token_reviews_total{cluster="prod.example.com",result="error"}')
    assert.equal(sent, 0, 'what was not asked is no error')
  })

  test('without a rate: half of what may be under way, so that another address is asked about at once', async (t) => {
    const { stub, connect } = await setUp(t)
    stub.answerToken = (review) => {
      if (review.spec['token'] === 'good') replyReview(review, { authenticated: true, user: { username: 'carol' } })
    }
    const attackers = [connect(ATTACKER), connect(ATTACKER)]
    for (let i = 0; i < 200; i++) {
      const session = attackers[i % 2]
      if (session !== undefined) void h2Request(session, ['authorization', `Bearer made-up-${i}`])
    }
    await waitFor('reviews', () => stub.reviews.length >= MAX_CALLS_IN_FLIGHT / 2)
    assert.equal((await h2Request(connect(OTHER), ['authorization', 'Bearer good'])).status, 200)
    assert.equal(stub.reviews.length, MAX_CALLS_IN_FLIGHT / 2 + 1)
  })

  test('one longer than any token is: 401, without a review', async (t) => {
    const { stub, connect } = await setUp(t)
    const answer = await h2Request(connect(ATTACKER), ['authorization', `Bearer ${'x'.repeat(64 * 1024 + 1)}`])
    assert.equal(answer.status, 401)
    assert.equal(stub.reviews.length, 0)
  })

  test('do not keep access reviews waiting, nor the other way round', async (t) => {
    const { stub, connect } = await setUp(t, limited(1))
    const attacker = connect(ATTACKER)
    for (let i = 0; i < 50; i++) void h2Request(attacker, ['authorization', `Bearer made-up-${i}`])
    await waitFor('a review', () => stub.reviews.length > 0)
    stub.answerAccess = (review) => replyReview(review, { allowed: true })
    assert.equal((await h2Request(connect(ATTACKER, 'alice'), ['impersonate-user', 'bob'])).status, 200)
  })
})
