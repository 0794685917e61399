import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSecureContext, getCiphers } from 'node:tls'
import { CIPHER_SUITES, tlsPolicy } from './tls-policy.ts'

test('OpenSSL knows every suite', () => {
  const known = new Set(getCiphers())
  for (const suite of CIPHER_SUITES) {
    const { ciphers = '' } = tlsPolicy('VersionTLS12', [suite])
    for (const name of ciphers.split(':')) assert.ok(known.has(name.toLowerCase()), `${suite}: ${name}`)
    assert.doesNotThrow(() => createSecureContext({ ciphers }), suite)
  }
})

test('in the order of preference, each once; none = those of Node', () => {
  const { minVersion, ciphers = '' } = tlsPolicy('VersionTLS12', [
    'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384',
    'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305',
    'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256',
    'TLS_AES_128_GCM_SHA256',
  ])
  assert.equal(minVersion, 'TLSv1.2')
  assert.deepEqual(ciphers.split(':').slice(3), ['ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-CHACHA20-POLY1305'])
  assert.deepEqual(tlsPolicy('VersionTLS13', []), { minVersion: 'TLSv1.3' })
})
