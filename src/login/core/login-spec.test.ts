// Logins as flags: which are the same, what is asked of a provider, where the browser goes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { execUser } from './exec-credential.ts'
import { DEFAULT_REDIRECT, type LoginFlags, loginKey, readLoginSpec, scopeText } from './login-spec.ts'

const FLAGS: LoginFlags = {
  issuer: 'https://login.example.com',
  clientId: 'kubernetes',
  scope: [],
  authParam: [],
  redirectUrl: DEFAULT_REDIRECT,
}

test('where the browser brings the login: any port, unless one is named', () => {
  const address = (redirectUrl: string): unknown => Object.values(readLoginSpec({ ...FLAGS, redirectUrl }).redirect)
  assert.deepEqual(address(DEFAULT_REDIRECT), ['127.0.0.1', 0, '/callback'])
  assert.deepEqual(address('http://localhost'), ['localhost', 0, '/'])
  assert.deepEqual(address('http://localhost:8000/a/b'), ['localhost', 8000, '/a/b'])
  assert.deepEqual(address('http://[::1]/'), ['[::1]', 0, '/'])
  assert.deepEqual(address('http://127.0.0.1:80/'), ['127.0.0.1', 80, '/'])
  for (const wrong of [
    '',
    'callback',
    'http://127.0.0.2/',
    'http://0.0.0.0/',
    'http://localhost.example.com/',
    'http://127.0.0.1/?x',
    'http://127.0.0.1/#x',
  ])
    assert.throws(() => address(wrong), /--redirect-url is not/, wrong)
})

test('scopes: those that are given, or the default ones that the provider has', () => {
  const asked = (scope: readonly string[], supported?: readonly string[]): string =>
    scopeText(readLoginSpec({ ...FLAGS, scope }), supported)
  assert.equal(asked([], ['groups', 'openid', 'email', 'address']), 'openid email groups')
  assert.equal(asked([], []), 'openid')
  assert.equal(asked([]), 'openid')
  assert.equal(asked(['openid,groups', ' email'], ['openid']), 'openid groups email')
})

test('a login of another client, provider, scope or parameter has other tokens; a secret, a redirect and a CA do not matter', () => {
  const key = (flags: Partial<LoginFlags>): string => loginKey(readLoginSpec({ ...FLAGS, ...flags }))
  const others = [{ clientId: 'x' }, { issuer: 'https://x' }, { scope: ['openid'] }, { authParam: ['prompt=login'] }]
  assert.equal(new Set([{}, ...others].map(key)).size, 5)
  const same = [{ clientSecret: 's' }, { redirectUrl: 'http://localhost:1/' }, { issuerCaFile: 'ca.crt' }]
  for (const flags of same) assert.equal(key(flags), key({}))
})

test('the user of a kubeconfig has the same login, and what is the default is left out', () => {
  assert.deepEqual(execUser(FLAGS, 'portcullis'), {
    exec: {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: 'portcullis',
      args: ['login', '--issuer=https://login.example.com', '--client-id=kubernetes'],
      interactiveMode: 'IfAvailable',
      provideClusterInfo: false,
      installHint: 'portcullis is not on PATH: it logs in at https://login.example.com',
    },
  })
  const { exec } = execUser(
    { ...FLAGS, clientSecret: 's', scope: ['openid'], authParam: ['a=b'], redirectUrl: 'http://localhost:8000/' },
    'x',
  )
  const { args } = exec as { args: readonly string[] }
  assert.deepEqual(args.slice(3), [
    '--client-secret=s',
    '--scope=openid',
    '--auth-param=a=b',
    '--redirect-url=http://localhost:8000/',
  ])
  assert.throws(() => execUser({ ...FLAGS, clientId: '' }, 'x'), /--login-client-id is missing/)
})
