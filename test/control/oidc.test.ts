// The embedded API server with a real OpenID provider: whose ID tokens it takes, what they may do, and what happens when the provider
// changes its keys or goes away.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Json } from '../harness/clients/control-client.ts'
import { type EmbeddedGateway, runCli, startEmbedded, UC_PATH } from '../harness/gateways/embedded.ts'
import { OIDC_CLIENT, type OidcIssuer, startOidcIssuer } from '../harness/servers/oidc-issuer.ts'
import { waitFor } from '../harness/wait.ts'

const WHO = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const REVIEW = { body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' } }
const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace' }
const PEOPLE = {
  alice: { email: 'alice@example.com', email_verified: true, groups: ['sre', 'all'], team: 'core' },
  bob: { groups: 'all', team: 'core' },
  mallory: { groups: ['system:masters'], team: 'core' },
  guest: { groups: ['sre'] },
}

describe('with an OpenID provider', () => {
  let issuer: OidcIssuer
  let embedded: EmbeddedGateway

  const auditDir = mkdtempSync(join(tmpdir(), 'portcullis-oidc-audit-'))
  const auditLog = join(auditDir, 'audit.log')

  before(async () => {
    issuer = await startOidcIssuer({ people: PEOPLE })
    embedded = await startEmbedded({
      args: [
        `--control-oidc-issuer-url=${issuer.url}`,
        `--control-oidc-client-id=${OIDC_CLIENT}`,
        '--control-oidc-username-prefix=oidc:',
        '--control-oidc-groups-claim=groups',
        '--control-oidc-required-claim=team=core',
        `--control-oidc-ca-file=${issuer.caFile}`,
        '--control-admin=group:sre',
        '--control-viewer=group:all',
        `--control-audit-log-path=${auditLog}`,
      ],
    })
  })
  after(async () => {
    await embedded?.stop()
    await issuer?.stop()
    rmSync(auditDir, { recursive: true, force: true })
  })

  async function review(token: string): Promise<{ code: number; user: Json }> {
    const { code, json } = await embedded.clientOf({ token }).call('POST', WHO, REVIEW)
    return { code, user: json?.status?.userInfo }
  }

  test('a login names the user, and its groups give roles', async () => {
    const alice = await issuer.login('alice')
    const { code, user } = await review(alice)
    assert.equal(code, 201)
    assert.equal(user.username, 'oidc:alice')
    assert.deepEqual(user.groups, ['sre', 'all', 'system:authenticated'])
    const asAlice = embedded.clientOf({ token: alice })
    const created = { body: { ...NAMESPACE, metadata: { name: 'by-alice' } } }
    assert.equal((await asAlice.call('POST', '/api/v1/namespaces', created)).code, 201)
    const audited = await waitFor('the audit event', () => {
      const lines = readFileSync(auditLog, 'utf8').trim().split('\n')
      return lines.map((line): Json => JSON.parse(line)).find(({ objectRef }) => objectRef?.name === 'by-alice')
    })
    assert.deepEqual(audited.user, { username: 'oidc:alice', groups: user.groups })
    const asBob = embedded.clientOf({ token: await issuer.login('bob') })
    assert.equal((await asBob.call('GET', UC_PATH)).code, 200)
    const refused = await asBob.call('POST', '/api/v1/namespaces', {
      body: { ...NAMESPACE, metadata: { name: 'by-bob' } },
    })
    assert.equal(refused.code, 403)
    assert.match(refused.text, /User \\"oidc:bob\\" cannot create resource \\"namespaces\\"/)
    assert.equal((await asBob.call('GET', '/api/v1/secrets')).code, 403)
    // Role admin may impersonate any user.
    const asIfBob = { headers: { 'impersonate-user': 'oidc:bob' } }
    assert.equal((await asAlice.call('GET', '/api/v1/secrets', asIfBob)).code, 403)
    assert.equal((await asBob.call('GET', UC_PATH, { headers: { 'impersonate-user': 'x' } })).code, 403)
  })

  const bad: readonly [what: string, claims: Record<string, unknown>, header?: Record<string, unknown>][] = [
    ['another client', { aud: 'other' }],
    ['no audience', { aud: undefined }],
    ['an end in the past', { exp: 1_600_000_000 }],
    ['no end', { exp: undefined }],
    ['a beginning in the future', { nbf: Math.floor(Date.now() / 1000) + 3600 }],
    ['another issuer', { iss: 'https://login.example.com' }],
    ['no name', { sub: undefined }],
    ['a required claim with another value', { team: 'web' }],
    ['a reserved group', { groups: ['system:masters'] }],
    ['a group of ours', { groups: ['portcullis:admins'] }],
    ['an algorithm that is not allowed', {}, { alg: 'RS512' }],
    ['an unknown key', {}, { kid: 'unknown' }],
  ]

  test('each wrong token is 401, also where anybody may read', async () => {
    const good = await issuer.sign({ team: 'core' })
    assert.equal((await review(good)).code, 201)
    for (const [what, claims, header] of bad) {
      const token = await issuer.sign({ team: 'core', ...claims }, header)
      assert.equal((await review(token)).code, 401, what)
      assert.equal((await embedded.clientOf({ token }).call('GET', '/version')).code, 401, what)
    }
    const [head, payload] = good.split('.')
    const none = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url')
    for (const token of [`${none}.${payload}.`, `${none}.${payload}.AA`, `${head}.${payload}.AAAA`, `${good}A`]) {
      assert.equal((await review(token)).code, 401)
    }
    assert.equal((await review(await issuer.login('mallory'))).code, 401)
    assert.equal((await review(await issuer.login('guest'))).code, 401)
    const metrics = await embedded.gateway.metrics()
    for (const result of ['accepted', 'audience', 'expired', 'not-yet-valid', 'claims', 'reserved-name', 'algorithm']) {
      assert.match(metrics, new RegExp(`^portcullis_control_oidc_tokens_total\\{result="${result}"\\} [1-9]`, 'm'))
    }
  })

  test('many tokens with unknown keys do not make it ask the provider for each', async () => {
    const before = issuer.keyRequests
    const client = embedded.clientOf({})
    const tokens = await Promise.all(Array.from({ length: 50 }, (_, i) => issuer.sign({}, { kid: `unknown-${i}` })))
    const answers = await Promise.all(
      tokens.map((token) => client.call('GET', '/version', { headers: { authorization: `Bearer ${token}` } })),
    )
    assert.deepEqual(new Set(answers.map(({ code }) => code)), new Set([401]))
    assert.ok(issuer.keyRequests - before <= 2, `${issuer.keyRequests - before} requests`)
  })

  test('a user is revoked, watches included, and a token by its id', async () => {
    const token = await issuer.sign({ sub: 'carol', groups: ['all'], team: 'core', jti: 'carol-1' })
    const other = await issuer.sign({ sub: 'carol', groups: ['all'], team: 'core', jti: 'carol-2' })
    const client = embedded.clientOf({ token })
    const watch = await client.watch(`${UC_PATH}?watch=true`)
    const { dataDir } = embedded
    const revoke = (...args: string[]) => runCli(['control', 'revoke', `--data-dir=${dataDir}`, ...args])
    assert.equal((await revoke('--credential-id=JTI=carol-1')).code, 0)
    await watch.end()
    assert.match((await client.call('GET', UC_PATH)).text, /revoked/)
    assert.equal((await review(other)).code, 201)
    assert.equal((await revoke('--user=oidc:carol')).code, 0)
    assert.equal((await review(other)).code, 401)
  })

  test('a change of keys needs no restart: the first token after it is good, one before it no longer', async () => {
    const before = await issuer.login('bob')
    assert.equal((await review(before)).code, 201)
    issuer.rotate()
    const now = await issuer.login('bob')
    // Had a client asked a moment ago, it is too early to ask again.
    await waitFor('the new key', async () => (await review(now)).code === 201)
    assert.equal((await review(before)).code, 401)
    // A body that arrives while the keys are fetched is not lost.
    issuer.rotate()
    const body = { ...NAMESPACE, metadata: { name: 'late', annotations: { note: 'x'.repeat(100_000) } } }
    const next = await issuer.login('alice')
    const seen: number[] = []
    const codes = await waitFor('a write with it', async () => {
      const { code } = await embedded.clientOf({ token: next }).call('POST', '/api/v1/namespaces', { body })
      seen.push(code)
      return code !== 401 && seen
    })
    assert.equal(codes.at(-1), 201)
    assert.equal(
      (await embedded.admin.call('GET', '/api/v1/namespaces/late')).json.metadata.annotations.note.length,
      100_000,
    )
  })

  test('while the provider is away its tokens stay good', async () => {
    const known = await issuer.login('bob')
    await waitFor('its key', async () => (await review(known)).code === 201)
    const unseen = await issuer.login('alice')
    await issuer.away()
    assert.equal((await review(unseen)).code, 201)
    assert.equal((await review(await issuer.sign({}, { kid: 'newer' }))).code, 401)
    await issuer.back()
  })

  test('a start without the provider: other credentials work, its tokens are 401 until it is back', async () => {
    const token = await issuer.login('bob')
    await embedded.restart('SIGTERM', () => issuer.away())
    assert.equal((await embedded.admin.call('GET', UC_PATH)).code, 200)
    assert.equal((await review(token)).code, 401)
    const away = 'the OpenID provider cannot be asked for its keys; its tokens are refused'
    await waitFor('its log', () => embedded.gateway.logs().includes(away))
    await issuer.back()
    await waitFor('its keys', async () => (await review(token)).code === 201)
    await waitFor('its log', () => embedded.gateway.logs().includes('keys of the OpenID provider read'))
  })
})
