import assert from 'node:assert/strict'
import { test } from 'node:test'
import { controlOidcRules } from './control-oidc.ts'

const CONFIG = {
  controlOidcIssuerUrl: 'https://login.example.com',
  controlOidcClientId: 'kubernetes',
  controlOidcUsernameClaim: 'sub',
  controlOidcUsernamePrefix: '',
  controlOidcGroupsClaim: '',
  controlOidcGroupsPrefix: '',
  controlOidcRequiredClaims: [],
  controlOidcCaFile: '',
  controlOidcSigningAlgs: ['RS256'],
} as const

function username(more: Partial<Record<'controlOidcUsernameClaim' | 'controlOidcUsernamePrefix', string>>): string {
  return controlOidcRules({ ...CONFIG, ...more }).username.prefix
}

test('the name of a user has the issuer in front, as at a kube-apiserver', () => {
  assert.equal(username({}), 'https://login.example.com#')
  assert.equal(username({ controlOidcUsernamePrefix: '-' }), '')
  assert.equal(username({ controlOidcUsernamePrefix: 'oidc:' }), 'oidc:')
  assert.equal(username({ controlOidcUsernameClaim: 'email' }), '')
  assert.equal(username({ controlOidcUsernameClaim: 'email', controlOidcUsernamePrefix: 'x:' }), 'x:')
})

test('groups and required claims', () => {
  assert.equal(controlOidcRules(CONFIG).groups, undefined)
  const rules = controlOidcRules({
    ...CONFIG,
    controlOidcGroupsClaim: 'groups',
    controlOidcGroupsPrefix: 'company:',
    controlOidcRequiredClaims: ['hd=example.com', 'team=a=b'],
  })
  assert.deepEqual(rules.groups, { claim: 'groups', prefix: 'company:' })
  assert.deepEqual(rules.requiredClaims, { hd: 'example.com', team: 'a=b' })
})
