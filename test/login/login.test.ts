// `portcullis login` at a real OpenID provider: the code flow with a browser, the device flow, refreshes, several commands at once, and logout.

import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { claimsOf, LoginRuns } from '../harness/servers/login-runs.ts'
import { OIDC_CLIENT, type OidcIssuer, startOidcIssuer } from '../harness/servers/oidc-issuer.ts'
import type { TestBrowser } from '../harness/servers/test-browser.ts'

const PEOPLE = { alice: { email: 'alice@example.com', email_verified: true, groups: ['sre'] } }
const HOUR_MS = 3_600_000

let issuer: OidcIssuer
let runs: LoginRuns

before(async () => {
  issuer = await startOidcIssuer({ people: PEOPLE })
})
after(() => issuer?.stop())
beforeEach(() => {
  runs = new LoginRuns(issuer)
})
afterEach(() => runs.remove())

/** How often users were sent to log in. */
function logins(): number {
  return issuer.requests.get('/auth') ?? 0
}

test('the code flow: a browser logs in, and the client gets an ExecCredential; the next call has the same token, without the provider', async () => {
  const first = await runs.login()
  assert.equal(first.code, 0, first.err)
  const { apiVersion, kind, status } = JSON.parse(first.out)
  assert.deepEqual([apiVersion, kind], ['client.authentication.k8s.io/v1', 'ExecCredential'])
  const { iss, aud, email, exp } = claimsOf(first.out)
  assert.deepEqual([iss, aud, email], [issuer.url, OIDC_CLIENT, 'alice@example.com'])
  assert.ok(Date.parse(status.expirationTimestamp) <= Number(exp) * 1000)
  assert.match(first.pages[0] ?? '', /<h1>Logged in<\/h1>/)
  assert.equal(statSync(runs.file).mode & 0o777, 0o600)
  assert.equal(statSync(runs.dir).mode & 0o777, 0o700)

  await issuer.away()
  try {
    const second = await runs.login()
    assert.deepEqual([second.code, second.out, second.err], [0, first.out, ''])
  } finally {
    await issuer.back()
  }
})

test('run by a user it says who is logged in, and no token', async () => {
  const { code, out, err } = await runs.login({ execInfo: '' })
  assert.equal(code, 0, err)
  assert.match(
    out,
    /^logged in at https:\S+ as alice@example\.com: the token is valid until \S+Z, renewed when it is needed\n$/,
  )
  const { idToken, refreshToken } = JSON.parse(readFileSync(runs.file, 'utf8'))
  for (const secret of [idToken, refreshToken]) assert.ok(!`${out}${err}`.includes(secret))
})

test('v1beta1 is answered as it asks, and other versions are refused', async () => {
  const asks = (version: string): string => JSON.stringify({ apiVersion: `client.authentication.k8s.io/${version}` })
  const beta = await runs.login({ execInfo: asks('v1beta1') })
  assert.equal(JSON.parse(beta.out).apiVersion, 'client.authentication.k8s.io/v1beta1')
  const alpha = await runs.login({ execInfo: asks('v1alpha1') })
  assert.match(
    alpha.err,
    /^error: KUBERNETES_EXEC_INFO asks for apiVersion "[^"]*v1alpha1"; write apiVersion: [^\n]*\n$/,
  )
})

test('a redirect to localhost on a port of its own', async () => {
  const { code, err, pages } = await runs.login({ redirectUrl: 'http://localhost:4180/callback' })
  assert.equal(code, 0, err)
  assert.match(pages[0] ?? '', /Logged in/)
})

test('the device flow: the code is typed on another device', async () => {
  const type = async (url: string, browser: TestBrowser): Promise<string> => {
    const form = await browser.open(url)
    const confirm = await browser.submit(form, {})
    const page = /name="confirm"/.test(confirm.text) ? await browser.submit(confirm, { confirm: 'yes' }) : confirm
    return page.text
  }
  const { code, out, err, pages } = await runs.login({ flow: 'device', browse: type })
  assert.equal(code, 0, `${err}${pages.join()}`)
  assert.match(err, /^open https:\/\/localhost:\d+\/device on any device, and enter the code [A-Z-]+\n/)
  assert.equal(claimsOf(out)['email'], 'alice@example.com')
  assert.ok(JSON.parse(readFileSync(runs.file, 'utf8')).refreshToken !== '')
})

test('a token that is about to expire is refreshed without the user, again and again; refresh tokens rotate', async () => {
  const before = await runs.login()
  const known = logins()
  let at = Date.now()
  for (let round = 0; round < 2; round++) {
    const { refreshToken } = JSON.parse(readFileSync(runs.file, 'utf8'))
    at += HOUR_MS
    const { code, out, err } = await runs.login({ now: () => at })
    assert.deepEqual([code, err], [0, ''])
    assert.notEqual(out, before.out)
    assert.notEqual(JSON.parse(readFileSync(runs.file, 'utf8')).refreshToken, refreshToken)
  }
  assert.equal(logins(), known)
})

test('a refresh token that is over: the user logs in again', async () => {
  await runs.login()
  const refreshToken = JSON.parse(readFileSync(runs.file, 'utf8')).refreshToken
  // Used here, it is replaced there: oidc-provider takes the use of an old one for theft.
  const later = Date.now() + HOUR_MS
  await runs.login({ now: () => later })
  const tokens = JSON.parse(readFileSync(runs.file, 'utf8'))
  const stolen = { ...tokens, refreshToken, expiresAtMs: 0 }
  writeFileSync(runs.file, JSON.stringify(stolen))
  const known = logins()
  const { code, err } = await runs.login()
  assert.equal(code, 0, err)
  assert.match(err, /^the login of alice@example\.com at \S+ has ended: the provider does not refresh it\n/)
  assert.equal(logins(), known + 1)
})

test('a refresh that brings the token of another user is refused, and changes nothing', async () => {
  await runs.login()
  const tokens = JSON.parse(readFileSync(runs.file, 'utf8'))
  const ofBob = JSON.stringify({ ...tokens, subject: 'bob', expiresAtMs: 0 })
  writeFileSync(runs.file, ofBob)
  const { code, out, err } = await runs.login()
  assert.deepEqual([code, out], [1, ''])
  assert.match(err, /^error: the refresh at \S+ returned the token of another user; [^\n]+\n$/)
  assert.equal(readFileSync(runs.file, 'utf8'), ofBob)
})

test('several commands at once: one browser, one refresh', async () => {
  const known = logins()
  const first = await Promise.all([1, 2, 3, 4].map(() => runs.login()))
  for (const { code, err } of first) assert.equal(code, 0, err)
  assert.equal(new Set(first.map(({ out }) => out)).size, 1)
  assert.equal(logins(), known + 1)
  const tokens = issuer.requests.get('/token') ?? 0
  const later = Date.now() + HOUR_MS - 1_000
  const again = await Promise.all([1, 2, 3, 4].map(() => runs.login({ now: () => later })))
  assert.equal(new Set(again.map(({ out }) => out)).size, 1)
  assert.equal(issuer.requests.get('/token'), tokens + 1)
})

test('after a login that was refused, commands that waited for it open no second browser', async () => {
  const deny = async (url: string, browser: TestBrowser): Promise<string> => {
    const query = new URL(url).searchParams
    const answer = new URLSearchParams({ error: 'access_denied', state: query.get('state') ?? '', iss: issuer.url })
    return (await browser.open(`${query.get('redirect_uri')}?${answer}`)).text
  }
  const all = await Promise.all([1, 2, 3].map(() => runs.login({ browse: deny })))
  assert.deepEqual(
    all.map(({ code }) => code),
    [1, 1, 1],
  )
  assert.equal(all.flatMap(({ pages }) => pages).length, 1)
  const errors = all.map(({ err }) => err.split('\n').at(-2)).sort()
  assert.match(errors[0] ?? '', /^error: the login at \S+ was refused: access_denied; /)
  assert.match(
    errors[1] ?? '',
    /^error: the login that this command waited for did not succeed; run the command again$/,
  )
})

test('scopes, or another user, are another login; --force logs in again', async () => {
  const known = logins()
  await runs.login()
  await runs.login({ scope: ['openid,email'] })
  await runs.login({ force: true })
  assert.equal(logins(), known + 3)
})

test('a client with a secret', async () => {
  const secret = 'a-secret-of-32-characters-or-more'
  const other = await startOidcIssuer({ people: PEOPLE, clientSecret: secret })
  const at = new LoginRuns(other)
  try {
    const without = await at.login()
    assert.match(
      without.err,
      /^error: the login at \S+ was refused: invalid_client[^\n]*; check --client-id; a client with a secret needs --client-secret$/m,
    )
    const { code, err } = await at.login({ clientSecret: secret })
    assert.equal(code, 0, err)
  } finally {
    at.remove()
    await other.stop()
  }
})

test('logout: the refresh token is of no use any more, and the tokens are gone', async () => {
  await runs.login()
  const kept = readFileSync(runs.file, 'utf8')
  assert.deepEqual(
    (await runs.logout({ issuer: 'https://other.example.com' })).out,
    'no user is logged in at https://other.example.com\n',
  )
  const { code, out, err } = await runs.logout()
  assert.deepEqual([code, err], [0, ''])
  assert.match(
    out,
    /^alice@example\.com at \S+: logged out, the refresh token is revoked\nto end the session of the browser as well, open: https:\S+\/session\/end\?\S+\n$/,
  )
  // A token in an argument of the browser, or on a terminal, is one that others can read.
  assert.doesNotMatch(out, /eyJ/)
  assert.equal(runs.file, '')
  writeFileSync(join(runs.dir, `${'0'.repeat(32)}.json`), kept, { mode: 0o600 })
  assert.equal((await runs.logout()).code, 0)
  assert.equal((await runs.logout()).out, 'no user is logged in\n')
})

test('logout while the provider is away: forgotten here, and said', async () => {
  await runs.login()
  await issuer.away()
  try {
    const { code, err } = await runs.logout()
    assert.equal(code, 1)
    assert.match(
      err,
      /^error: alice@example\.com at \S+: logged out here, but not at the provider: discovery at [^\n]*\n$/,
    )
    assert.equal(runs.file, '')
  } finally {
    await issuer.back()
  }
})
