// What can go wrong in `portcullis login`, and what others try: each is one line that says where, what, and how to fix it.

import assert from 'node:assert/strict'
import { chmodSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer as createHttp, type Server } from 'node:http'
import { createServer, type Server as HttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { serverCertificate } from '../harness/pki.ts'
import { claimsOf, LoginRuns, logIn, type RunOptions } from '../harness/servers/login-runs.ts'
import { type OidcIssuer, startOidcIssuer } from '../harness/servers/oidc-issuer.ts'
import type { TestBrowser } from '../harness/servers/test-browser.ts'

const HOUR_MS = 3_600_000

let issuer: OidcIssuer
let runs: LoginRuns

before(async () => {
  issuer = await startOidcIssuer({ people: { alice: { email: 'alice@example.com' } } })
})
after(() => issuer?.stop())
beforeEach(() => {
  runs = new LoginRuns(issuer)
})
afterEach(() => runs.remove())

/** The login fails with this one line, behind what the user was told before; nothing is on standard output. */
async function fails(options: RunOptions, line: RegExp): Promise<void> {
  const { code, out, err } = await runs.login(options)
  assert.deepEqual([code, out], [1, ''], err)
  const [last = '', ...more] = err.split('\n').filter((one) => one.startsWith('error: '))
  assert.deepEqual(more, [])
  assert.match(last, line)
  assert.match(last, /^error: [^\n]+; [^\n]+$/)
  assert.doesNotMatch(err, /^ {4}at /m)
}

/** The redirect of a login with these fields, over those of a good one. */
async function redirect(url: string, fields: Readonly<Record<string, string>>, browser: TestBrowser): Promise<string> {
  const query = new URL(url).searchParams
  const good = { state: query.get('state') ?? '', iss: issuer.url }
  const page = await browser.open(`${query.get('redirect_uri')}?${new URLSearchParams({ ...good, ...fields })}`)
  return `${page.status} ${page.text}`
}

describe('flags', () => {
  const wrong: readonly (readonly [string, RunOptions, RegExp])[] = [
    ['no issuer', { issuer: '' }, /^error: --issuer is missing; /],
    ['an issuer without TLS', { issuer: 'http://login.example.com' }, /^error: --issuer is not https:\/\/HOST/],
    ['an issuer with a query', { issuer: 'https://login.example.com?x' }, /^error: --issuer is not https:\/\/HOST/],
    ['no client', { clientId: '' }, /^error: --client-id is missing; /],
    ['scopes without openid', { scope: ['email'] }, /^error: --scope has no openid/],
    ['a redirect to another machine', { redirectUrl: 'http://192.0.2.1/callback' }, /^error: --redirect-url is not/],
    ['a redirect over TLS', { redirectUrl: 'https://127.0.0.1/callback' }, /^error: --redirect-url is not/],
    ['a parameter without a value', { authParam: ['prompt'] }, /^error: --auth-param is not NAME=VALUE/],
    ['a state', { authParam: ['state=1'] }, /^error: --auth-param may not set state; /],
    ['another redirect', { authParam: ['redirect_uri=x'] }, /^error: --auth-param may not set redirect_uri; /],
    [
      'a CA that is not there',
      { issuerCaFile: '/none/ca.crt' },
      /^error: --issuer-ca-file: cannot read \/none\/ca\.crt/,
    ],
    ['a CA that is none', { issuerCaFile: '/etc/passwd' }, /^error: --issuer-ca-file: cannot read \/etc\/passwd: /],
    ['a timeout without a unit', { timeout: '5' }, /^error: --timeout "5" is not a duration/],
    ['garbage of a client', { execInfo: '{' }, /^error: KUBERNETES_EXEC_INFO is not JSON; /],
  ]
  for (const [what, options, line] of wrong) test(what, () => fails(options, line))
})

describe('the redirect', () => {
  test('another state gets 400, and the login goes on', async () => {
    const seen: string[] = []
    const browse = async (url: string, browser: TestBrowser): Promise<string> => {
      seen.push(await redirect(url, { state: 'another', code: 'stolen' }, browser))
      seen.push(await redirect(url, { error: 'access_denied', state: '' }, browser))
      return await logIn(url, browser)
    }
    const { code, err } = await runs.login({ browse })
    assert.equal(code, 0, err)
    for (const page of seen) assert.match(page, /^400 .*No login with this state is waiting/s)
  })

  test('only another state: the login is not finished in time, and the line says that there were others', () =>
    fails(
      { timeout: '2s', browse: (url, browser) => redirect(url, { state: 'another', code: 'x' }, browser) },
      /^error: the login was not completed in time \(1 answers with a different state were refused\); /,
    ))

  test('two states, another path, another method, another host: none of them is the login', async () => {
    const seen: number[] = []
    const browse = async (url: string, browser: TestBrowser): Promise<string> => {
      const query = new URL(url).searchParams
      const [uri, state] = [query.get('redirect_uri') ?? '', query.get('state') ?? '']
      for (const path of [`${uri}?code=x&state=${state}&state=${state}`, `${uri}/more?code=x&state=${state}`]) {
        seen.push((await browser.open(path)).status)
      }
      seen.push((await browser.open(`${uri}?code=x&state=${state}`, {})).status)
      const renamed = uri.replace('127.0.0.1', 'localhost')
      seen.push((await browser.open(`${renamed}?code=x&state=${state}`)).status)
      return await logIn(url, browser)
    }
    const { code, err } = await runs.login({ browse })
    assert.equal(code, 0, err)
    assert.deepEqual(seen, [400, 404, 405, 400])
  })

  test('the token of another nonce is refused', () =>
    fails(
      { browse: (url, browser) => logIn(url.replace(/nonce=[^&]+/, 'nonce=another'), browser) },
      /^error: the login at \S+: its answer is not that of this login: unexpected ID Token "nonce" claim value; /,
    ))

  test('a code that was asked for with another challenge is refused (PKCE)', () =>
    fails(
      {
        browse: (url, browser) =>
          logIn(url.replace(/code_challenge=[^&]+/, `code_challenge=${'A'.repeat(43)}`), browser),
      },
      /^error: the login at \S+ was refused: invalid_grant/,
    ))

  test('an answer of another provider is refused (RFC 9207)', () =>
    fails(
      { browse: (url, browser) => redirect(url, { code: 'x', iss: 'https://other.example.com' }, browser) },
      /^error: the login at \S+: its answer is not that of this login: /,
    ))

  test('what a provider says is shown without what terminals interpret, and not in the page', async () => {
    let page = ''
    const browse = async (url: string, browser: TestBrowser): Promise<string> => {
      const text = `\x1b[2J\u202e${'x'.repeat(2_000)}<script>`
      page = await redirect(url, { error: 'access_denied', error_description: text }, browser)
      return page
    }
    await fails({ browse }, /^error: the login at \S+ was refused: access_denied: \\x1b\[2J\\u202ex{100,300}…; /)
    assert.match(page, /^400 .*Not logged in/s)
    assert.doesNotMatch(page, /script/)
  })

  test('the port is taken', async () => {
    const server = await listening(createHttp())
    const { port } = server.address() as AddressInfo
    try {
      await fails(
        { redirectUrl: `http://127.0.0.1:${port}/callback` },
        new RegExp(`^error: cannot listen on 127\\.0\\.0\\.1:${port}, [^;]*: the port is taken; end the program`),
      )
    } finally {
      server.close()
    }
  })
})

describe('the file of tokens', () => {
  beforeEach(async () => {
    const { code, err } = await runs.login()
    assert.equal(code, 0, err)
  })

  test('others may read it', async () => {
    chmodSync(runs.file, 0o640)
    await fails(
      {},
      /^error: others on this machine may read or change \S+\.json \(mode 0640\); run: chmod 600 \S+\.json$/,
    )
  })

  test('others may write to its directory', async () => {
    chmodSync(runs.dir, 0o777)
    await fails({}, /^error: others on this machine may write to \S+ \(mode 0777\); run: chmod 700 /)
  })

  test('a link in its place', async () => {
    const { file } = runs
    writeFileSync(`${file}.real`, readFileSync(file), { mode: 0o600 })
    rmSync(file)
    symlinkSync(`${file}.real`, file)
    await fails({}, /^error: \S+\.json is not a regular file; remove it/)
  })

  test('a directory that cannot be made', async () => {
    const taken = join(runs.dir, 'taken')
    writeFileSync(taken, '')
    await fails(
      { tokenDir: join(taken, 'below') },
      /^error: cannot create \S+: ENOTDIR.*; give this user permission there/,
    )
  })

  for (const [what, text] of [
    ['garbage', '\0\x01{'],
    ['nothing', ''],
    ['another format', '{"format":"portcullis-login/v9"}'],
    ['a field of a wrong type', '{"format":"portcullis-login/v1","issuedAtMs":0,"expiresAtMs":1e15,"idToken":[]}'],
    ['more than a megabyte', ' '.repeat(1_100_000)],
  ] as const) {
    test(`${what} in it: a warning, and another login`, async () => {
      writeFileSync(runs.file, text)
      const { code, out, err } = await runs.login()
      assert.equal(code, 0, err)
      assert.match(err, /^warning: \S+\.json does not hold tokens of this program; it is overwritten\n/)
      assert.equal(claimsOf(out)['email'], 'alice@example.com')
      assert.equal(statSync(runs.file).mode & 0o777, 0o600)
    })
  }

  test('logout removes garbage, too', async () => {
    writeFileSync(runs.file, 'garbage')
    const { code, err } = await runs.logout()
    assert.equal(code, 0)
    assert.match(err, /^warning: \S+\.json did not hold tokens of this program; it is removed\n$/)
    assert.equal(runs.file, '')
  })
})

describe('the provider is away', () => {
  afterEach(() => issuer.back().catch(() => undefined))

  test('without a token the line says what was tried', async () => {
    await issuer.away()
    await fails(
      {},
      /^error: discovery at https:\S+ failed: connect ECONNREFUSED [^;]*; check --issuer and the network, and try again$/,
    )
  })

  test('a token that is still valid stays in use, with a warning', async () => {
    const first = await runs.login()
    await issuer.away()
    const nearlyOver = Number(claimsOf(first.out)['exp']) * 1000 - 5_000
    const { code, out, err } = await runs.login({ now: () => nearlyOver })
    assert.equal(code, 0, err)
    assert.equal(JSON.parse(out).status.token, JSON.parse(first.out).status.token)
    assert.equal(Date.parse(JSON.parse(out).status.expirationTimestamp), nearlyOver + 5_000)
    assert.match(err, /^warning: discovery at \S+ failed: [^\n]*; the token is not renewed yet\n$/)
    const later = Date.now() + 2 * HOUR_MS
    await fails({ now: () => later }, /^error: discovery at \S+ failed: /)
  })
})

describe('a provider that is none', () => {
  const ca = createCA({ commonName: 'a login' })
  let server: HttpsServer
  let respond: (path: string) => { code: number; body: string } = () => ({ code: 404, body: '' })
  let other: LoginRuns
  let url = ''

  before(async () => {
    const { certPem: cert, keyPem: key } = serverCertificate(ca, ['localhost'], ['127.0.0.1'])
    server = createServer({ cert, key }, (request, response) => {
      const { code, body } = respond(request.url ?? '')
      response.writeHead(code, { 'content-type': 'application/json', location: 'https://192.0.2.1/' }).end(body)
    })
    await listening(server)
    url = `https://localhost:${(server.address() as AddressInfo).port}`
  })
  after(() => server.close())
  beforeEach(() => {
    const caFile = join(runs.dir, 'ca.pem')
    writeFileSync(caFile, ca.certPem)
    other = new LoginRuns({ url, caFile })
  })
  afterEach(() => other.remove())

  const cases: readonly (readonly [string, number, () => string, RegExp])[] = [
    ['no discovery document', 404, () => 'not found', /it answers 404; check --issuer: \/\.well-known/],
    ['a redirect, which is not followed', 302, () => '', /it answers 302; check --issuer/],
    ['it fails', 503, () => '', /it answers 503; check --issuer and the network, and try again/],
    ['no JSON', 200, () => '<html>', /its answer is not that of this login: /],
    [
      'another issuer',
      200,
      () => '{"issuer":"https://evil.example.com"}',
      /calls itself https:\/\/evil\.example\.com; write --issuer exactly/,
    ],
    ['a document without end', 200, () => 'x'.repeat(3_000_000), /the answer has more than 1048576 bytes/],
    [
      'endpoints without TLS',
      200,
      () =>
        JSON.stringify({
          issuer: url,
          authorization_endpoint: 'http://127.0.0.1:1/auth',
          token_endpoint: 'http://127.0.0.1:1/token',
          device_authorization_endpoint: 'http://127.0.0.1:1/device',
        }),
      /it names an address that is not https:\/\//,
    ],
  ]
  for (const [what, code, body, line] of cases) {
    test(what, async () => {
      respond = () => ({ code, body: body() })
      const { code: exit, out, err } = await other.login({ flow: 'device' })
      assert.deepEqual([exit, out], [1, ''])
      assert.match(err, line)
      assert.match(err, /^error: [^\n]+; [^\n]+\n$/)
    })
  }

  test('a page that is no https:// is not opened', async () => {
    for (const page of ['file:///bin/sh', 'http://localhost:1/auth', 'calculator:1']) {
      respond = () => ({ code: 200, body: JSON.stringify({ issuer: url, authorization_endpoint: page }) })
      const { code, err } = await other.login({ browserCommand: '' })
      assert.equal(code, 1)
      assert.match(err, /^error: the login at \S+: [^\n]*: it names an address that is not https:\/\/; [^\n]+\n$/)
    }
  })

  test('a document whose fields have other types, or are missing: one line for each', async () => {
    const at = `${url}/x`
    const good = { issuer: url, authorization_endpoint: at, token_endpoint: at, device_authorization_endpoint: at }
    for (const field of [...Object.keys(good), 'scopes_supported', 'code_challenge_methods_supported']) {
      for (const value of [undefined, 5, [5], '\x1b[2J']) {
        respond = (path) =>
          path === '/x' ? { code: 400, body: '{}' } : { code: 200, body: JSON.stringify({ ...good, [field]: value }) }
        for (const flow of ['device', 'browser'] as const) {
          const { code, out, err } = await other.login({ flow, timeout: '1ms', browse: () => Promise.resolve('') })
          assert.deepEqual([code, out], [1, ''], `${field} ${JSON.stringify(value)}`)
          assert.match(
            err,
            /^(?:log in [^\n]+\n)?error: [ -~]+; [ -~]+\n$/,
            `${field} ${JSON.stringify(value)} ${flow}`,
          )
        }
      }
    }
  })

  test('a device login that answers nonsense', async () => {
    const at = `${url}/x`
    for (const body of [
      '{}',
      '[]',
      'null',
      '{"device_code":5}',
      '{"device_code":"a","user_code":"\\u001b[2J","verification_uri":"\\u001b[2J","expires_in":1e9}',
    ]) {
      respond = (path) =>
        path === '/x'
          ? { code: 200, body }
          : { code: 200, body: JSON.stringify({ issuer: url, token_endpoint: at, device_authorization_endpoint: at }) }
      const { code, err } = await other.login({ flow: 'device', timeout: '1s' })
      assert.equal(code, 1)
      assert.match(err, /^(?:open [ -~]+\n)?error: [ -~]+; [ -~]+\n$/)
    }
  })

  test('its certificate is signed by another CA', async () => {
    const { err } = await other.login({ issuerCaFile: issuer.caFile })
    assert.match(
      err,
      /^error: discovery at \S+: its certificate is not signed by a known CA; give its CA with --issuer-ca-file\n$/,
    )
  })
})

function listening<T extends Server | HttpsServer>(server: T): Promise<T> {
  return new Promise((resolve) => void server.listen(0, '127.0.0.1', () => resolve(server)))
}
