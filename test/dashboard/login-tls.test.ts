// Logging in to the dashboard as a user of the API server of the objects, in a browser: by a token over TLS, and by a client certificate.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { reviewedLogin } from '../../src/admin/app/access/objects-login.ts'
import { accessReviews } from '../../src/admin/app/access/review-access.ts'
import { AdminPort } from '../../src/admin/app/port/admin-port.ts'
import { assetRoutes } from '../../src/insight/admin/dashboard/assets.ts'
import { browserLogins } from '../../src/insight/app/dashboard/browser-logins.ts'
import { dashboardFiles } from '../../src/insight/io/dashboard/dashboard-files.ts'
import { SILENT } from '../../src/kit/api/ports.ts'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import { serverCertificate } from '../harness/pki.ts'
import { launchChromium } from './browser.ts'

const clusterCA = createCA({ commonName: 'cluster' })
const dir = mkdtempSync(join(tmpdir(), 'portcullis-login-tls-'))
let admin: AdminPort
let browser: Browser
let origin: string

before(async () => {
  const { certPem, keyPem } = serverCertificate(createCA({ commonName: 'admin' }), ['localhost'], ['127.0.0.1'])
  writeFileSync(join(dir, 'tls.crt'), certPem)
  writeFileSync(join(dir, 'tls.key'), keyPem)
  const post = (path: string, text: string) => {
    const { spec } = JSON.parse(text)
    const authenticated = spec.token === 'token-of-viewer'
    const status = path.includes('tokenreviews')
      ? { authenticated, user: { username: 'viewer', groups: [] } }
      : { allowed: spec.user === 'viewer' }
    return Promise.resolve({ status: 201, body: JSON.stringify({ status }) })
  }
  const login = reviewedLogin({
    reviews: accessReviews(post, () => 0, SILENT, 'the admin listener'),
    clientCA: () => clusterCA.certPem,
    ownUser: () => 'replica',
    now: Date.now,
  })
  ;[admin, browser] = await Promise.all([
    AdminPort.open({
      config: {
        ...loadConfig({ flags: { configDir: 'given' }, env: {}, readFile: () => '' }),
        adminListen: '127.0.0.1:0',
        adminTlsCertFile: join(dir, 'tls.crt'),
        adminTlsPrivateKeyFile: join(dir, 'tls.key'),
      },
      state: { live: () => [], ready: () => [], describe: () => ({}) },
      metrics: { contentType: 'text/plain', text: () => Promise.resolve('') },
      routes: assetRoutes(dashboardFiles),
      login,
      browserLogins,
      log: SILENT,
      audit: undefined,
    }),
    launchChromium(),
  ])
  origin = `https://127.0.0.1:${admin.port}`
})
after(async () => {
  await browser?.close()
  await admin?.stop()
  rmSync(dir, { recursive: true, force: true })
})

test('a token is reviewed over TLS, its cookie goes nowhere else', async () => {
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  const page = await context.newPage()
  await page.goto(origin)
  await page.getByLabel('Bearer token').fill('token-of-viewer')
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByText('viewer', { exact: true }).waitFor()
  const [cookie, ...more] = await context.cookies()
  assert.deepEqual([cookie?.name, more.length], ['__Host-portcullis-session', 0])
  assert.deepEqual([cookie?.secure, cookie?.httpOnly, cookie?.sameSite, cookie?.path], [true, true, 'Strict', '/'])
  assert.match(cookie?.value ?? '', /^[A-Za-z0-9_-]{43}$/)
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByLabel('Bearer token').waitFor()
  assert.deepEqual(await context.cookies(), [])
  await context.close()
})

test("a client certificate needs no login, and has nothing to log out of; another CA's gets the login", async () => {
  for (const [ca, admitted] of [
    [clusterCA, true],
    [createCA({ commonName: 'cluster' }), false],
  ] as const) {
    const { certPem, keyPem } = issueCertificate(ca, { commonName: 'viewer', usage: 'client' })
    const context = await browser.newContext({
      ignoreHTTPSErrors: true,
      clientCertificates: [{ origin, cert: Buffer.from(certPem), key: Buffer.from(keyPem) }],
    })
    const page = await context.newPage()
    await page.goto(origin)
    if (admitted) {
      await page.getByText('viewer', { exact: true }).waitFor()
      assert.equal(await page.getByRole('button', { name: 'Log out' }).count(), 0)
    } else await page.getByLabel('Bearer token').waitFor()
    await context.close()
  }
})
