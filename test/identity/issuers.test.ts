// spec.authentication.jwt: whose tokens the gateway verifies itself, and what issuers and strangers can do about it that are out to harm.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { JwtAuthenticator, UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clusterObject } from '../harness/objects/objects.ts'
import { startTokenIssuers, TEST_AUDIENCE, type TokenIssuers } from '../harness/servers/token-issuers.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const PATH = '/api/v1/pods'
const MIB = 1024 * 1024

let issuers: TokenIssuers
let stub: StubUpstream
let gateway: InProcessGateway
const sessions: ClientHttp2Session[] = []

before(async () => {
  issuers = await startTokenIssuers()
  stub = await startStub()
  gateway = await startInProcess([object('good')])
  const token = issuers.token('good')
  await waitFor('the cluster', async () => (await ask(token)) === 200)
})
after(async () => {
  for (const session of sessions) session.destroy()
  await gateway?.stop()
  await stub?.stop()
  await issuers?.stop()
})
beforeEach(() => {
  stub.answer = (request) => reply(request, 200, '{}')
  stub.tokens.clear()
  stub.seen.length = 0
  stub.reviews.length = 0
})

function authenticator(name: string, more: Partial<JwtAuthenticator> = {}): JwtAuthenticator {
  return {
    issuer: { url: issuers.url(name), certificateAuthority: issuers.ca, audiences: [TEST_AUDIENCE] },
    claimMappings: {
      username: { claim: 'sub', prefix: 'oidc:' },
      groups: { claim: 'groups', prefix: 'oidc:' },
    },
    ...more,
  }
}

function object(...names: readonly string[]): UpstreamCluster {
  return clusterObject([stub], { spec: { authentication: { jwt: names.map((name) => authenticator(name)) } } })
}

function connect(): ClientHttp2Session {
  const session = h2Connect({ port: gateway.port })
  sessions.push(session)
  return session
}

async function ask(token: string, session = connect()): Promise<number> {
  const head = [':method', 'GET', ':scheme', 'https', ':authority', HOST, ':path', PATH]
  return (await h2Request(session, [...head, 'authorization', `Bearer ${token}`])).status
}

function metric(text: string, result: string): number {
  return Number(
    new RegExp(`^portcullis_id_tokens_total\\{cluster="${HOST}",result="${result}"\\} (\\d+)`, 'm').exec(text)?.[1],
  )
}

test('a token is verified here: the cluster gets the user, and no review', async () => {
  assert.equal(await ask(issuers.token('good', { groups: ['sre'], jti: 'j1' })), 200)
  assert.equal(stub.reviews.length, 0)
  const [seen] = stub.seen.slice(-1)
  assert.deepEqual(seen?.values('impersonate-user'), ['oidc:alice'])
  assert.deepEqual(seen?.values('impersonate-group'), ['oidc:sre', 'system:authenticated'])
  assert.deepEqual(seen?.values('impersonate-extra-authentication.kubernetes.io%2fcredential-id'), ['JTI=j1'])
})

test('tokens of others, and those that their issuer does not vouch for, are reviewed by the cluster', async () => {
  const strange = issuers.token('good', { iss: 'https://login.example.com' })
  const expired = issuers.token('good', { exp: 1 })
  const foreign = issuers.token('good', {}, { by: 'foreign' })
  for (const token of ['opaque', strange, expired, foreign]) assert.equal(await ask(token), 401)
  assert.equal(stub.reviews.length, 4)
  const known = issuers.token('good', { exp: 2 })
  stub.tokens.set(known, { username: 'system:serviceaccount:default:robot' })
  assert.equal(await ask(known), 200)
  assert.deepEqual(stub.seen.slice(-1)[0]?.values('impersonate-user'), ['system:serviceaccount:default:robot'])
})

test('nothing of a token is logged', () => {
  const lines = JSON.stringify(gateway.logged)
  assert.match(lines, /a token of an issuer is not accepted/)
  assert.doesNotMatch(lines, /eyJ/)
})

describe('tokens that are forged', () => {
  const FORGED = {
    none: { by: 'none' },
    'none, signed': { header: { alg: 'none' } },
    'the public key as a secret': { by: 'secret' },
    'the public key as a secret, said to be RS256': { by: 'secret', header: { alg: 'RS256' } },
    'a key in the header': { by: 'foreign', header: { jwk: { kty: 'RSA', n: 'AQAB', e: 'AQAB' } } },
    'a URL of keys in the header': {
      by: 'foreign',
      header: { jku: 'https://localhost:1/keys', x5u: 'https://localhost:1/' },
    },
    'a path for a key id': { by: 'foreign', header: { kid: '../../../../dev/null' } },
    'SQL for a key id': { by: 'foreign', header: { kid: "x' UNION SELECT 'secret" } },
    'a list for a key id': { by: 'foreign', header: { kid: ['key-1'] } },
    'a property of objects for a key id': { by: 'foreign', header: { kid: '__proto__' } },
  } as const
  for (const [what, options] of Object.entries(FORGED)) {
    test(what, async () => assert.equal(await ask(issuers.token('good', {}, options)), 401))
  }

  test('names of Kubernetes, by name, by group, by prefix', async () => {
    const bare = { claimMappings: { username: { claim: 'sub', prefix: '' }, groups: { claim: 'groups', prefix: '' } } }
    gateway.apply([clusterObject([stub], { spec: { authentication: { jwt: [authenticator('good', bare)] } } })])
    assert.equal(await ask(issuers.token('good')), 200)
    for (const claims of [{ sub: 'system:admin' }, { groups: ['system:masters'] }, { groups: 'system:nodes' }]) {
      assert.equal(await ask(issuers.token('good', claims)), 401)
    }
    gateway.apply([object('good')])
  })

  test('a signature of another token, and a byte more', async () => {
    const [first, second] = [issuers.token('good'), issuers.token('good', { sub: 'bob' })].map((one) => one.split('.'))
    assert.equal(await ask([first?.[0], second?.[1], first?.[2]].join('.')), 401)
    for (const end of ['A', '=', '.', '.e30']) assert.equal(await ask(`${issuers.token('good')}${end}`), 401)
  })

  test('huge tokens: none is parsed, and the largest are not even reviewed', async () => {
    assert.equal(await ask(issuers.token('good', { more: 'x'.repeat(20_000) })), 401)
    assert.equal(stub.reviews.length, 1)
    assert.equal(await ask(issuers.token('good', { more: 'x'.repeat(70_000) })), 401)
    assert.equal(stub.reviews.length, 1)
  })

  test('a thousand groups are many enough', async () => {
    assert.equal(await ask(issuers.token('good', { groups: Array.from({ length: 1001 }, (_, n) => `g${n}`) })), 401)
  })
})

test('unknown keys, of any number, make it ask the issuer hardly ever', async () => {
  const asked = () => issuers.asked.get('/good/keys') ?? 0
  const before = asked()
  const session = connect()
  const tokens = Array.from({ length: 60 }, (_, n) => issuers.token('good', {}, { header: { kid: `unknown-${n}` } }))
  const answers = await Promise.all(tokens.map((token) => ask(token, session)))
  assert.deepEqual(new Set(answers), new Set([401]))
  assert.ok(asked() - before <= 2, `${asked() - before} requests`)
  assert.ok(metric(await gateway.metrics(), 'unknown-key') >= 60)
})

test('a change of keys needs no restart: new tokens are good, those of the key before no longer', async () => {
  const old = issuers.token('good', { sub: 'before' })
  issuers.rotate()
  const fresh = issuers.token('good', { sub: 'fresh' })
  await waitFor('the new key', async () => (await ask(fresh)) === 200)
  assert.equal(await ask(old), 401)
})

test('a change of the spec counts at once, on open connections too', async () => {
  const session = connect()
  const token = issuers.token('good', { sub: 'hot' })
  assert.equal(await ask(token, session), 200)
  gateway.apply([object()])
  assert.equal(await ask(token, session), 401)
  const other = authenticator('good', {
    issuer: { url: issuers.url('good'), certificateAuthority: issuers.ca, audiences: ['another'] },
  })
  gateway.apply([clusterObject([stub], { spec: { authentication: { jwt: [other] } } })])
  assert.equal(await ask(token, session), 401)
  gateway.apply([object('good')])
  await waitFor('the keys', async () => (await ask(token, session)) === 200)
})

describe('issuers that are out to harm', () => {
  const keys = (name: string) => `/${name}/keys`
  const discovery = (name: string) => `/${name}/.well-known/openid-configuration`
  /** What each answers, in the place of its keys or configuration. */
  const HARM: Readonly<Record<string, () => void>> = {
    'ten MiB of keys': () =>
      issuers.answer(keys('evil'), (_, response) => void response.end(`{"keys":[${'"x",'.repeat((10 * MIB) / 4)}0]}`)),
    'ten thousand keys': () => {
      const [key] = issuers.keySet.keys
      const many = Array.from({ length: 10_000 }, (_, n) => ({ ...key, kid: `k${n}` }))
      issuers.answer(keys('evil'), (_, response) => void response.end(JSON.stringify({ keys: many })))
    },
    'keys of costly sizes': () => {
      const costly = { kty: 'RSA', kid: 'big', n: Buffer.alloc(2048, 0xff).toString('base64url'), e: 'AQAB' }
      issuers.answer(keys('evil'), (_, response) => void response.end(JSON.stringify({ keys: [costly] })))
    },
    'no answer': () => issuers.answer(discovery('evil'), () => undefined),
    'a redirect to keys elsewhere': () =>
      issuers.answer(keys('evil'), (_, response) => {
        response.writeHead(302, { location: `${issuers.url('elsewhere')}/keys` })
        response.end()
      }),
    'a redirect of the configuration': () =>
      issuers.answer(discovery('evil'), (_, response) => {
        response.writeHead(307, { location: issuers.url('elsewhere') })
        response.end()
      }),
    'keys over http': () =>
      issuers.answer(discovery('evil'), (_, response) => {
        response.end(JSON.stringify({ issuer: issuers.url('evil'), jwks_uri: 'http://localhost:1/keys' }))
      }),
    'the name of another issuer': () =>
      issuers.answer(discovery('evil'), (_, response) => {
        response.end(JSON.stringify({ issuer: issuers.url('good'), jwks_uri: `${issuers.url('evil')}/keys` }))
      }),
    'a text that never ends': () =>
      issuers.answer(keys('evil'), (_, response) => {
        const more = (): void => {
          while (!response.destroyed && response.write('[['.repeat(8192)));
          if (!response.destroyed) response.once('drain', more)
        }
        more()
      }),
  }
  for (const [what, harm] of Object.entries(HARM)) {
    test(`${what}: its tokens are not accepted, those of others are`, async () => {
      harm()
      gateway.apply([object('evil', 'good')])
      await waitFor('it was asked', () => (issuers.asked.get(discovery('evil')) ?? 0) > 0)
      const good = issuers.token('good', { sub: what })
      await waitFor('the good issuer', async () => (await ask(good)) === 200)
      // Its key is not among the hundred that count of ten thousand.
      if (what !== 'no answer') assert.equal(await ask(issuers.token('evil')), 401)
      assert.equal(issuers.asked.get('/elsewhere/keys'), undefined)
      gateway.apply([object('good')])
      issuers.answer(keys('evil'), undefined)
      issuers.answer(discovery('evil'), undefined)
      issuers.asked.delete(discovery('evil'))
    })
  }

  test('an issuer cannot vouch for the users of another one', async () => {
    gateway.apply([object('good', 'twin')])
    const token = issuers.token('twin', { iss: issuers.url('good') }, { by: 'foreign' })
    assert.equal(await ask(token), 401)
    gateway.apply([object('good')])
  })
})

test('while an issuer is away, its tokens stay good; those of a new key wait for it', async () => {
  const token = issuers.token('good', { sub: 'away' })
  await issuers.away()
  issuers.rotate()
  const fresh = issuers.token('good', { sub: 'newer' })
  assert.equal(await ask(token), 200)
  assert.equal(await ask(fresh), 401)
  await issuers.back()
  await waitFor('the new key', async () => (await ask(issuers.token('good', { sub: 'newest' }))) === 200)
})
