// `GET /clusters`: which clusters accept the credential of a request, and what strangers can learn from it or make it cost.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { UpstreamCluster, UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { tokenHashes } from '../../src/gateway/io/reviews/credential-hashes.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request, type Response } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { startTokenIssuers, TEST_AUDIENCE, type TokenIssuers } from '../harness/servers/token-issuers.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

/** Not the name of a cluster. */
const HOST = 'gateway.example.com'
const FAILURES = 5

let issuers: TokenIssuers
let stub: StubUpstream
let gateway: InProcessGateway
let ca: KeyPair
const sessions: ClientHttp2Session[] = []

before(async () => {
  issuers = await startTokenIssuers()
  stub = await startStub()
  ca = createCA({ commonName: 'client CA' })
  gateway = await startInProcess(objects())
  await waitFor('the keys of the issuer', async () => (await ask({ token: issuers.token('good') })).status === 200)
})
after(async () => {
  for (const session of sessions) session.destroy()
  await gateway?.stop()
  await stub?.stop()
  await issuers?.stop()
})
beforeEach(() => {
  stub.answer = (request) => reply(request, 200, '{}')
  stub.seen.length = 0
  stub.reviews.length = 0
  gateway.apply(objects())
})

interface Wanted {
  readonly issuer?: string
  readonly audience?: string
  readonly prefix?: string
  readonly ca?: KeyPair
  readonly spec?: Partial<UpstreamClusterSpec>
}

function object(name: string, wanted: Wanted = {}): UpstreamCluster {
  const { issuer, audience = TEST_AUDIENCE, prefix = 'oidc:', spec = {} } = wanted
  const jwt =
    issuer === undefined
      ? []
      : [
          {
            issuer: { url: issuers.url(issuer), certificateAuthority: issuers.ca, audiences: [audience] },
            claimMappings: { username: { claim: 'sub', prefix } },
          },
        ]
  return clusterObject([stub], {
    name,
    ...(wanted.ca !== undefined && { clientCA: wanted.ca }),
    spec: { ...spec, authentication: { ...(jwt.length > 0 && { jwt }), ...spec.authentication } },
  })
}

function objects(): UpstreamCluster[] {
  return [
    object('by-token', { issuer: 'good' }),
    object('by-token-too', { issuer: 'good', prefix: 'other:' }),
    object('by-both', { issuer: 'good', ca }),
    object('by-certificate', { ca }),
    object('other-audience', { issuer: 'good', audience: 'else' }),
    object('other-issuer', { issuer: 'other' }),
    object('by-review'),
  ]
}

interface Asked {
  readonly token?: string
  readonly pair?: KeyPair
  readonly host?: string
  readonly path?: string
  readonly method?: string
  readonly to?: { readonly port: number }
}

function connect(pair?: KeyPair, to: { readonly port: number } = gateway): ClientHttp2Session {
  const session = h2Connect({ port: to.port, ...(pair !== undefined && { certificate: pair }) })
  sessions.push(session)
  return session
}

async function ask(asked: Asked, session = connect(asked.pair, asked.to)): Promise<Response> {
  const { token, host = HOST, path = '/clusters', method = 'GET' } = asked
  const head = [':method', method, ':scheme', 'https', ':authority', host, ':path', path]
  return await h2Request(session, token === undefined ? head : [...head, 'authorization', `Bearer ${token}`])
}

async function named(asked: Asked): Promise<{ names: string[]; incomplete: boolean }> {
  const { status, body } = await ask(asked)
  assert.equal(status, 200)
  const { kind, clusters, incomplete } = JSON.parse(String(body))
  assert.equal(kind, 'ReachableClusters')
  return { names: clusters.map(({ name }: { name: string }) => name).sort(), incomplete }
}

test('a token: the clusters whose issuers vouch for it; others might accept it, too', async () => {
  const found = await named({ token: issuers.token('good') })
  assert.deepEqual(found, { names: ['by-both', 'by-token', 'by-token-too'], incomplete: true })
  assert.deepEqual(await named({ token: issuers.token('good', { aud: ['else', TEST_AUDIENCE] }) }), {
    names: ['by-both', 'by-token', 'by-token-too', 'other-audience'],
    incomplete: true,
  })
  assert.equal(stub.reviews.length, 0)
  assert.equal(stub.seen.length, 0)
})

test('a client certificate: the clusters of its CA, and these are all; with a token, those of both', async () => {
  const pair = clientPair(ca, 'alice')
  assert.deepEqual(await named({ pair }), { names: ['by-both', 'by-certificate'], incomplete: false })
  const both = await named({ pair, token: issuers.token('good') })
  assert.deepEqual(both, { names: ['by-both', 'by-certificate', 'by-token', 'by-token-too'], incomplete: true })
})

test('revoked users and tokens, and users that are not on the access list, do not find a cluster', async () => {
  const token = issuers.token('good')
  const [hash = ''] = tokenHashes(token)
  gateway.apply([
    object('stays', { issuer: 'good' }),
    object('revoked-user', { issuer: 'good', spec: { authentication: { revoked: [{ user: 'oidc:alice' }] } } }),
    object('revoked-token', { issuer: 'good', spec: { authentication: { revoked: [{ tokenHash: hash }] } } }),
    object('closed', { issuer: 'good', spec: { accessControl: { allow: [{ users: ['bob'] }] } } }),
    object('revoked-certificate', { ca, issuer: 'good', spec: { authentication: { revoked: [{ user: 'alice' }] } } }),
  ])
  assert.deepEqual((await named({ token })).names, ['revoked-certificate', 'stays'])
  // The certificate decides in its cluster, as in every request.
  assert.deepEqual((await named({ token, pair: clientPair(ca, 'alice') })).names, ['stays'])
})

describe('a sender that is refused learns nothing', () => {
  const refused = async (asked: Asked): Promise<void> => {
    const { status, body } = await ask(asked)
    assert.equal(status, 401)
    const { message } = JSON.parse(String(body))
    assert.equal(message, 'Unauthorized')
  }

  test('anonymous, also where clusters admit them', async () => {
    gateway.apply([object('open', { spec: { authentication: { anonymous: true } } })])
    await refused({})
  })

  test('tokens that no issuer vouches for', async () => {
    for (const claims of [
      { iss: 'https://login.example.com' },
      { aud: 'strange' },
      { exp: 1 },
      { sub: 'x'.repeat(20_000) },
    ]) {
      await refused({ token: issuers.token('good', claims) })
    }
    for (const token of ['opaque', 'a.b.c', `${issuers.token('good')}A`, 'x'.repeat(70_000)]) await refused({ token })
    const names = { sub: { name: 'alice' } }
    await refused({ token: issuers.token('good', names) })
  })

  test('forged tokens', async () => {
    for (const by of ['none', 'secret', 'foreign'] as const) await refused({ token: issuers.token('good', {}, { by }) })
    await refused({ token: issuers.token('good', {}, { by: 'secret', header: { alg: 'RS256' } }) })
    await refused({ token: issuers.token('good', {}, { header: { crit: ['x'] } }) })
    // Signed by another issuer of the gateway.
    await refused({ token: issuers.token('other', { iss: `${issuers.url('good')}/` }) })
  })

  test('certificates of a CA that no cluster has any more, and of none', async () => {
    await refused({ pair: clientPair(createCA({ commonName: 'strange' }), 'alice') })
    const session = connect(clientPair(ca, 'alice'))
    assert.equal((await ask({}, session)).status, 200)
    gateway.apply([object('by-token', { issuer: 'good' })])
    await waitFor('the change', async () => (await ask({}, session)).status === 401)
  })
})

test('it is answered where no cluster is named: host names, and what stands below the path, are those of clusters', async () => {
  const token = issuers.token('good')
  await ask({ token, host: 'by-token' })
  assert.equal(stub.seen.at(-1)?.path, '/clusters')
  await ask({ token, path: '/clusters/by-token/clusters' })
  assert.equal(stub.seen.at(-1)?.path, '/clusters')
  for (const path of ['/clusters/', '/clusters/nothing', '/clusters%2f', '/Clusters', '/clustersx']) {
    assert.equal((await ask({ token, path })).status, 404, path)
  }
  assert.equal((await ask({ token, method: 'POST' })).status, 404)
  assert.equal((await ask({ token, path: '/clusters?limit=1' })).status, 200)
  gateway.apply([object('fallback', { issuer: 'good', spec: { default: true } })])
  await waitFor('the default cluster', async () => (await ask({ token, path: '/version' })).status === 200)
  stub.seen.length = 0
  assert.deepEqual((await named({ token })).names, ['fallback'])
  assert.equal(stub.seen.length, 0)
  await ask({ token, method: 'POST' })
  assert.equal(stub.seen.at(-1)?.path, '/clusters')
})

test('a connection that was opened for a cluster does not list them', async () => {
  const session = h2Connect({ port: gateway.port, serverName: 'by-token' })
  sessions.push(session)
  assert.equal((await ask({ token: issuers.token('good') }, session)).status, 421)
})

test('hundreds of clusters with one issuer: all are named', async () => {
  const many = Array.from({ length: 300 }, (_, n) => object(`cluster-${n}`, { issuer: 'good' }))
  gateway.apply(many)
  const token = issuers.token('good')
  await waitFor('the clusters', async () => (await named({ token })).names.length === many.length)
  gateway.apply(objects())
})

test('forged tokens block their address, valid ones of it go on, and those of unknown issuers do not count', async () => {
  const guarded = await startInProcess(objects(), { maxAuthenticationFailures: FAILURES })
  try {
    const token = issuers.token('good')
    await waitFor('the keys', async () => (await ask({ token, to: guarded })).status === 200)
    const strange = issuers.token('good', { iss: 'https://login.example.com' })
    for (let n = 0; n < FAILURES * 2; n++) assert.equal((await ask({ token: strange, to: guarded })).status, 401)
    const isBlocked = async (signer: 'foreign' | undefined): Promise<boolean> => {
      const fresh = issuers.token('good', { jti: String(Math.random()) }, signer && { by: signer })
      return (await ask({ token: fresh, to: guarded })).status === 429
    }
    await waitFor('the block', () => isBlocked('foreign'))
    // Not looked at, once the forged ones have used up what is looked at.
    await waitFor('the block of tokens that were not seen before', async () => {
      return (await isBlocked('foreign')) && (await isBlocked(undefined))
    })
    assert.equal((await ask({ to: guarded })).status, 429)
    assert.equal((await ask({ token, to: guarded })).status, 200)
    assert.doesNotMatch(JSON.stringify(guarded.logged), /eyJ/)
    assert.doesNotMatch(await guarded.metrics(), /eyJ/)
  } finally {
    await guarded.stop()
  }
})
