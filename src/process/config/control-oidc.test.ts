import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError, loadConfig } from './config.ts'

const GIVEN = { controlOidcIssuerUrl: 'https://login.example.com', controlOidcClientId: 'kubernetes' }

/** The invalid settings. */
function wrong(flags: Readonly<Record<string, unknown>>): string[] {
  try {
    loadConfig({ flags, env: {}, readFile: () => '' })
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.problems.map(({ where }) => where)
  }
}

test('an issuer is an https URL without a query, and needs a client', () => {
  assert.deepEqual(wrong(GIVEN), [])
  for (const url of [
    'http://login.example.com',
    'login.example.com',
    'https://',
    'https://a.example/?x',
    'https://u@a.example',
  ]) {
    assert.deepEqual(wrong({ ...GIVEN, controlOidcIssuerUrl: url }), ['--control-oidc-issuer-url'], url)
  }
  assert.deepEqual(wrong({ controlOidcIssuerUrl: 'https://login.example.com' }), ['--control-oidc-client-id'])
  assert.deepEqual(wrong({ ...GIVEN, configDir: 'x' }), ['--control-oidc-issuer-url'])
})

test('without an issuer the others would have no effect', () => {
  const all = {
    controlOidcClientId: 'kubernetes',
    controlOidcUsernamePrefix: '-',
    controlOidcGroupsClaim: 'groups',
    controlOidcGroupsPrefix: 'x:',
    controlOidcRequiredClaim: ['a=b'],
    controlOidcCaFile: 'ca.crt',
    controlOidcUsernameClaim: 'email',
    controlOidcSigningAlgs: 'ES256',
  }
  assert.equal(wrong(all).length, Object.keys(all).length)
})

test('algorithms that everybody could sign with cannot be chosen; claims have a value', () => {
  for (const algs of ['none', 'HS256', 'RS256,HS512', 'EdDSA']) {
    assert.deepEqual(wrong({ ...GIVEN, controlOidcSigningAlgs: algs }), ['--control-oidc-signing-algs'], algs)
  }
  assert.deepEqual(wrong({ ...GIVEN, controlOidcSigningAlgs: 'ES256,PS512' }), [])
  for (const claims of [['hd'], ['=x'], ['a=b', 'a=c']]) {
    assert.deepEqual(wrong({ ...GIVEN, controlOidcRequiredClaim: claims }), ['--control-oidc-required-claim'])
  }
})
