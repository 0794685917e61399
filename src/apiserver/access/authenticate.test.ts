import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import type { Revocable } from '../../gateway/core/cluster/revocation.ts'
import { certificateHashes, tokenHashes } from '../../gateway/io/reviews/credential-hashes.ts'
import type { Peer } from '../../kit/api/stream.ts'
import { addressCharge } from '../../kit/core/shares/charge.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import { createTokenVerifier, generateTokenKey, issueControlToken } from '../../pki/io/control-tokens.ts'
import { type CertificateOptions, createCA, generateKey, issueCertificate } from '../../pki/io/pki.ts'
import { type Caller, createAuthenticator, isRevoked } from './authenticate.ts'

const START = Date.now()
const HOUR_MS = 60 * 60 * 1000
const keyPem = generateKey()
const ca = createCA({ commonName: 'control', keyPem })
const tokenKey = generateTokenKey()

let now = START
const authenticate = createAuthenticator({
  clientCA: () => ca.certPem,
  tokens: createTokenVerifier(tokenKey),
  now: () => now,
})

function peer(certPem?: string, verified = true): Peer {
  const chain = certPem === undefined ? [] : [new X509Certificate(certPem).raw]
  return {
    id: 1,
    protocol: 'h2',
    serverName: '',
    tlsCluster: '',
    localAddress: '127.0.0.1',
    localPort: 1,
    remoteAddress: '127.0.0.1',
    remotePort: 2,
    proxyAddress: '',
    certificate: certPem === undefined ? undefined : { chain, verified, verifyError: verified ? '' : 'no' },
    drain: () => false,
    addressCharge: addressCharge('127.0.0.1'),
    charge: addressCharge('127.0.0.1'),
    memo: new Map(),
  }
}

function client(options: Partial<CertificateOptions> = {}, issuer = ca): string {
  const names = { commonName: 'alice', organizations: ['ops'], usage: 'client', keyPem } as const
  return issueCertificate(issuer, { ...names, ...options }).certPem
}

function bearer(token: string): string[] {
  return [':method', 'GET', 'authorization', `Bearer ${token}`]
}

function token(user: string, ttlSeconds = 60): string {
  return issueControlToken(tokenKey, { user, groups: ['portcullis:viewers'], ttlSeconds, nowMs: now })
}

function nameOf(caller: Caller): string {
  if (typeof caller === 'string') return caller
  return isRevoked(caller) ? caller.revoked : caller.name
}

test('a client certificate names its user and groups', () => {
  const user = authenticate(peer(client()), []) as UserInfo
  assert.equal(user.name, 'alice')
  assert.deepEqual(user.groups, ['ops', 'system:authenticated'])
})

test('a token names its user', () => {
  const user = authenticate(peer(), bearer(token('vera'))) as UserInfo
  assert.equal(user.name, 'vera')
  assert.deepEqual(user.groups, ['portcullis:viewers', 'system:authenticated'])
})

test('without a credential the user is anonymous; a certificate without a user leaves it to the token', () => {
  assert.equal(authenticate(peer(), []), 'anonymous')
  assert.equal(authenticate(peer(client({ commonName: '' })), []), 'anonymous')
  assert.equal(nameOf(authenticate(peer(client({ commonName: '' })), bearer(token('vera')))), 'vera')
})

test('a bad credential is never anonymous', () => {
  const other = createCA({ commonName: 'other', keyPem })
  assert.equal(authenticate(peer(client({}, other)), []), 'invalid')
  assert.equal(authenticate(peer(client(), false), []), 'invalid')
  assert.equal(authenticate(peer(client({ notAfter: new Date(START - 1000), notBefore: new Date(0) })), []), 'invalid')
  assert.equal(authenticate(peer(), bearer('nonsense')), 'invalid')
  assert.equal(authenticate(peer(), bearer(`${token('vera')}x`)), 'invalid')
  // A bad certificate does not spoil a good token, nor a bad token a good certificate (authentication/request/union).
  assert.equal(nameOf(authenticate(peer(client({}, other)), bearer(token('vera')))), 'vera')
  assert.equal(nameOf(authenticate(peer(client()), bearer('nonsense'))), 'alice')
})

test('a credential that expires during a connection is refused at the next request', () => {
  const connection = peer(client({ notAfter: new Date(START + HOUR_MS) }))
  const short = token('vera', 60)
  assert.equal(nameOf(authenticate(connection, [])), 'alice')
  assert.equal(nameOf(authenticate(connection, [])), 'alice')
  now = START + 2 * HOUR_MS
  try {
    assert.equal(authenticate(connection, []), 'invalid')
    assert.equal(authenticate(peer(), bearer(short)), 'invalid')
  } finally {
    now = START
  }
})

test('revocations are checked for every request, also for credentials cached for a connection', () => {
  const seen: Revocable[] = []
  let answer = ''
  const checked = createAuthenticator({
    clientCA: () => ca.certPem,
    tokens: createTokenVerifier(tokenKey),
    revoked: (credential) => {
      seen.push(credential)
      return answer
    },
    now: () => now,
  })
  const pem = client()
  const connection = peer(pem)
  assert.equal(nameOf(checked(connection, [])), 'alice')
  answer = 'the client certificate is revoked'
  const refused = checked(connection, [])
  assert.ok(isRevoked(refused))
  assert.deepEqual([refused.revoked, refused.user.name], [answer, 'alice'])
  assert.deepEqual(seen.at(-1)?.hashes, certificateHashes(new X509Certificate(pem).raw))
  // A valid token doesn't make up for it.
  assert.ok(isRevoked(checked(connection, bearer(token('bob')))))
  const text = token('bob')
  assert.ok(isRevoked(checked(peer(), bearer(text))))
  const { kind, user, hashes = [] } = seen.at(-1) ?? {}
  assert.deepEqual([kind, user?.name], ['token', 'bob'])
  for (const hash of tokenHashes(text)) assert.ok(hashes.includes(hash))
  assert.match(hashes.at(-1) ?? '', /^jti=[0-9a-f-]{36}$/)
  // The answer doesn't reveal whether an invalid token is revoked.
  assert.equal(checked(peer(), bearer(`${text}x`)), 'invalid')
  assert.equal(checked(peer(), []), 'anonymous')
})
