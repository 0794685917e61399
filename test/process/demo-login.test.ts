// Logins in the demo: what its guide promises, what its provider does, and what it refuses.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, mock, test } from 'node:test'
import { parse } from 'yaml'
import { type RunningDemo, startDemo } from '../../src/demo/demo.ts'
import { followLoginGuide } from '../harness/docs/login-guide.ts'
import { PATIENT } from '../harness/patience.ts'
import { type Page, TestBrowser } from '../harness/servers/test-browser.ts'

const CALLBACK = 'http://127.0.0.1:8000/callback'
const VERIFIER = 'v'.repeat(43)
let folder: string
let demo: RunningDemo
const printed: string[] = []
let issuer: string
let ca: string
let stopped = false
// oidc-provider prints what it recommends.
const consoles = [mock.method(console, 'info'), mock.method(console, 'warn'), mock.method(console, 'error')]

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-demo-login-'))
  const ports = { listen: '127.0.0.1:0', adminListen: '127.0.0.1:0', controlListen: '127.0.0.1:0' }
  demo = await startDemo({ ...ports, dir: join(folder, 'demo'), out: (text) => void printed.push(text) })
  const { spec } = parse(file('objects/prod.yaml'))
  issuer = spec.authentication.jwt[0].issuer.url
  ca = file('pki/ca.crt')
}, PATIENT)

after(async () => {
  if (!stopped) await demo.stop()
  rmSync(folder, { recursive: true, force: true })
})

function file(name: string): string {
  return readFileSync(join(demo.dir, name), 'utf8')
}

test('every line of the guide does what it says: alice by a browser, bob with a code', PATIENT, async () => {
  const { kubeconfig, dir } = demo
  await followLoginGuide({ guide: printed.join(''), kubeconfig, home: folder, caFile: join(dir, 'pki/ca.crt'), ca })
})

test('no token is in a log, and nothing is printed beside the guide', PATIENT, () => {
  const [tokens = ''] = readdirSync(join(demo.dir, 'login')).filter((name) => name.endsWith('.json'))
  const { idToken, refreshToken } = JSON.parse(file(`login/${tokens}`))
  const logs = ['gateway.log', 'access.log'].map(file).join('')
  assert.match(logs, /oidc:bob@example\.com/)
  for (const secret of [idToken, refreshToken, idToken.split('.')[2]])
    assert.ok(secret !== '' && !logs.includes(secret))
  assert.doesNotMatch(printed.join(''), /eyJ/)
  for (const { mock: calls } of consoles) assert.equal(calls.callCount(), 0)
})

/** The page to which a client sends the browser. */
function begin(browser: TestBrowser, more: Readonly<Record<string, string>> = {}): Promise<Page> {
  const query = new URLSearchParams({
    client_id: 'kubernetes',
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid email groups',
    code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
    code_challenge_method: 'S256',
    ...more,
  })
  return browser.open(`${issuer}/auth?${query}`, undefined, CALLBACK)
}

function choose(browser: TestBrowser, { url }: Page, user: string): Promise<Page> {
  return browser.open(`${url}/${user}`, {}, CALLBACK)
}

/** The claims of the token for a code, or the error. */
async function redeem(url: string, verifier = VERIFIER): Promise<Readonly<Record<string, unknown>>> {
  const code = new URL(url).searchParams.get('code') ?? ''
  const form = { grant_type: 'authorization_code', client_id: 'kubernetes', redirect_uri: CALLBACK, code }
  const { text } = await new TestBrowser(ca).open(`${issuer}/token`, { ...form, code_verifier: verifier })
  const { id_token: token, error } = JSON.parse(text)
  return token === undefined ? { error } : JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString())
}

test('each login asks who the user is, also in a browser that is another one; it can log out', PATIENT, async () => {
  const browser = new TestBrowser(ca)
  const asked = await begin(browser)
  assert.match(asked.text, />alice<\/button>.*>bob<\/button>/s)
  const bob = await redeem((await choose(browser, asked, 'bob')).url)
  assert.deepEqual([bob['email'], bob['groups']], ['bob@example.com', ['support']])
  // A page that the browser sends by itself.
  const change = await choose(browser, await begin(browser), 'alice')
  const alice = await redeem((await browser.submit(change, {}, CALLBACK)).url)
  assert.deepEqual([alice['email'], alice['groups']], ['alice@example.com', ['developers']])
  const confirm = await browser.open(`${issuer}/session/end`)
  assert.match(confirm.text, /<h1>Log out<\/h1>/)
  assert.match((await browser.submit(confirm, { logout: 'yes' })).text, /<h1>Logged out<\/h1>/)
})

test('a code is worth nothing without its verifier, and once only with it', PATIENT, async () => {
  const browser = new TestBrowser(ca)
  const code = async (): Promise<string> => (await choose(browser, await begin(browser), 'alice')).url
  assert.deepEqual(await redeem(await code(), 'w'.repeat(43)), { error: 'invalid_grant' })
  const url = await code()
  assert.equal((await redeem(url))['sub'], 'alice')
  assert.deepEqual(await redeem(url), { error: 'invalid_grant' })
})

test(
  'refused: another browser, another user, another address for the code, a request without PKCE',
  PATIENT,
  async () => {
    const browser = new TestBrowser(ca)
    const asked = await begin(browser)
    for (const user of ['alice', 'carol', '__proto__']) {
      const { status, text } = await choose(new TestBrowser(ca), asked, user)
      assert.equal(status, 400)
      assert.match(text, /Begin again in the terminal/)
    }
    for (const user of ['carol', '__proto__']) assert.equal((await choose(browser, asked, user)).status, 404)
    // A link in another page chooses no user.
    assert.equal((await browser.open(`${asked.url}/alice`)).status, 404)
    for (const redirect_uri of ['https://attacker.example.com/', 'http://127.0.0.1:8000/other', 'http://<b>/']) {
      const { status, text } = await begin(new TestBrowser(ca), { redirect_uri })
      assert.equal(status, 400, redirect_uri)
      assert.match(text, /<h1>Not logged in<\/h1>/)
      assert.doesNotMatch(text, /<b>|attacker/)
    }
    assert.match((await begin(new TestBrowser(ca), { code_challenge: '' })).url, /[?&]error=invalid_request/)
  },
)

test('its keys are public ones, and at other addresses of the machine it does not listen', PATIENT, async () => {
  const { keys } = JSON.parse((await new TestBrowser(ca).open(`${issuer}/jwks`)).text)
  assert.deepEqual(
    keys.map((key: object) => Object.keys(key).sort()),
    [['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']],
  )
  const others = Object.values(networkInterfaces()).flatMap((all = []) => all.filter(({ internal }) => !internal))
  for (const { address, scopeid } of others) {
    if (scopeid === undefined || scopeid === 0) await refused(address)
  }
})

async function refused(host: string): Promise<void> {
  const socket = connect({ host, port: Number(new URL(issuer).port) })
  await assert.rejects(once(socket, 'connect'), { code: 'ECONNREFUSED' }, host)
}

test('it ends with the demo', PATIENT, async () => {
  stopped = true
  await demo.stop()
  await refused('127.0.0.1')
})
