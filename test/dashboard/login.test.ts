// Logging in to the dashboard: a token once, then a cookie; what is shown without, and what other sites may ask.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { assertAccessible, assertFits, launchChromium, openPage } from './browser.ts'
import { type ObservedGateway, startObserved } from './observed-gateway.ts'

const TOKEN = 'a-token-of-the-administrator-0123456789'
const dir = mkdtempSync(join(tmpdir(), 'portcullis-login-'))
let observed: ObservedGateway
let open: ObservedGateway
let browser: Browser

before(async () => {
  const file = join(dir, 'token')
  writeFileSync(file, `${TOKEN}\n`, { mode: 0o600 })
  ;[observed, open, browser] = await Promise.all([
    startObserved(0, { adminTokenFile: file }),
    startObserved(0),
    launchChromium(),
  ])
})
after(async () => {
  await browser.close()
  await observed.stop()
  await open.stop()
  rmSync(dir, { recursive: true, force: true })
})

interface Answer {
  readonly code: number
  readonly body: string
  readonly cookie: string
}

/** With header fields that fetch does not allow. */
function send(origin: string, path: string, headers: Record<string, string> = {}, form?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const method = form === undefined ? 'GET' : 'POST'
    const all = form === undefined ? headers : { 'content-type': 'application/x-www-form-urlencoded', ...headers }
    const sent = request(origin + path, { method, headers: all }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk
      })
      response.on('end', () => {
        const { 'set-cookie': [cookie = ''] = [] } = response.headers
        resolve({ code: response.statusCode ?? 0, body, cookie })
      })
    })
    sent.on('error', reject)
    sent.end(form)
  })
}

test('without a login there is the login, and nothing else', async () => {
  const page = await send(observed.origin, '/')
  assert.equal(page.code, 401)
  assert.match(page.body, /<title>Log in/)
  assert.doesNotMatch(page.body, /main-|prod\.example|<script/)
  for (const path of [
    '/api/v1/overview',
    '/api/v1/clusters/prod.example.com',
    '/api/v1/explain?target=/',
    '/metrics',
  ]) {
    const { code, body } = await send(observed.origin, path)
    assert.equal(code, 401, path)
    assert.doesNotMatch(body, /prod/, path)
  }
})

test('a wrong token, a right one, and out again, in a browser', async () => {
  const { page, close } = await openPage(browser, { width: 360 })
  await page.goto(observed.origin)
  await assertAccessible(page, 'the login')
  await assertFits(page, 'the login')
  await page.getByLabel('Bearer token').fill('wrong')
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('alert').waitFor()
  assert.match(await page.getByRole('alert').innerText(), /may not see the dashboard/)
  await page.getByLabel('Bearer token').fill(TOKEN)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.locator('.tile').first().waitFor()
  const [cookie] = await page.context().cookies()
  assert.deepEqual([cookie?.httpOnly, cookie?.sameSite], [true, 'Strict'])
  assert.doesNotMatch(cookie?.value ?? '', /a-token/)
  assert.equal(await page.evaluate('document.cookie'), '')
  await page.getByText('portcullis:admin-token').waitFor()
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByLabel('Bearer token').waitFor()
  assert.equal(
    (await send(observed.origin, '/api/v1/overview', { cookie: `${cookie?.name}=${cookie?.value}` })).code,
    401,
  )
  await close()
})

test('the cookie counts for as long as its token does, and other sites cannot use it', async () => {
  const { code, cookie } = await send(observed.origin, '/login', {}, `token=${TOKEN}`)
  assert.equal(code, 303)
  assert.match(cookie, /^portcullis-session=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=28800; HttpOnly; SameSite=Strict$/)
  const own = { cookie: cookie.split(';')[0] ?? '' }
  assert.equal((await send(observed.origin, '/api/v1/overview', own)).code, 200)
  for (const site of ['cross-site', 'same-site']) {
    const foreign = { ...own, 'sec-fetch-site': site }
    assert.equal((await send(observed.origin, '/api/v1/overview', foreign)).code, 403, site)
    assert.equal((await send(observed.origin, '/login', { 'sec-fetch-site': site }, `token=${TOKEN}`)).code, 403, site)
    assert.equal((await send(observed.origin, '/logout', foreign, '')).code, 403, site)
  }
  assert.equal((await send(observed.origin, '/api/v1/overview', own)).code, 200, 'no user has logged out')
  assert.equal((await send(observed.origin, '/api/v1/overview', { cookie: 'portcullis-session=' })).code, 401)
  assert.equal((await send(observed.origin, '/login', {}, `token=${'x'.repeat(100_000)}`)).code, 413)
})

test('a name that has come to mean this machine is not answered, an address is', async () => {
  const { port } = new URL(open.origin)
  for (const path of ['/', '/api/v1/overview', '/api/v1/explain?target=/']) {
    assert.equal((await send(open.origin, path, { host: `evil.example:${port}` })).code, 403, path)
    assert.equal((await send(open.origin, path, { host: `localhost:${port}` })).code, 200, path)
  }
})

test('who fails too often waits', async () => {
  const tries: number[] = []
  for (let i = 0; i < 8; i++) tries.push((await send(observed.origin, '/login', {}, 'token=guess')).code)
  assert.equal(tries[0], 401)
  assert.equal(tries.at(-1), 429, tries.join())
  const right = await send(observed.origin, '/login', {}, `token=${TOKEN}`)
  assert.equal(right.code, 429, 'also with the right one')
  assert.match(right.body, /Try again in \d+ s/)
})
