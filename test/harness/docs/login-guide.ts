// The lines of the demo's guide by which users log in, run as they stand: in a browser, and with the code of a terminal.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { confirmCode } from '../servers/choose-user.ts'
import { TestBrowser } from '../servers/test-browser.ts'
import { waitFor } from '../wait.ts'
import { type DemoGuide, section } from './demo-guide.ts'

export interface LoginGuide extends DemoGuide {
  /** The demo's CA. */
  readonly caFile: string
  /** PEM. */
  readonly ca: string
}

const BROWSE = join(import.meta.dirname, '../servers/browse.ts')

/** Every line of the section on logins: alice logs in by a browser, and then bob with a code. */
export async function followLoginGuide({ guide, kubeconfig, home, caFile, ca }: LoginGuide): Promise<void> {
  const browser = `#!/bin/sh\nexec '${process.execPath}' '${BROWSE}' '${caFile}' "$1" alice\n`
  writeFileSync(join(home, 'xdg-open'), browser, { mode: 0o755 })
  // By these, `portcullis login` knows that there is a browser.
  const env = { DISPLAY: ':0', SSH_CONNECTION: '', SSH_TTY: '' }
  const { next, open, end } = await section(guide, ['Logging in', 'Top talkers'], kubeconfig, home, env)
  await next('bin/portcullis login', 0, /^logged in at https:\/\/127\.0\.0\.1:\d+ as alice@example\.com:/)
  const whoami = await next('kubectl --context prod-login auth whoami', 0, /Username +oidc:alice@example\.com/)
  assert.match(whoami, /\[oidc:developers system:authenticated\]/)
  await next('kubectl --context prod-login label', 0, /configmap\/features labeled/)
  await next('bin/portcullis sessions prod', 0, / https:\/\/127\.0\.0\.1:\d+ +oidc:alice@example\.com/)
  await next('bin/portcullis logout', 0, /alice@example\.com .*: logged out, the refresh token is revoked/)
  const login = open('bin/portcullis login')
  try {
    const find = (pattern: RegExp) =>
      waitFor(String(pattern), () => pattern.exec(login.text())?.[1], { timeoutMs: 120_000 })
    const { text } = await confirmCode(new TestBrowser(ca), await find(/^\(or open (\S+)\)$/m), 'bob')
    assert.match(text, /<h1>Logged in<\/h1>/)
    await find(/^logged in at \S+ as (bob@example\.com):/m)
  } finally {
    login.close()
  }
  await next('kubectl --context staging-login get pods', 0, /web-/)
  const refused = /User "oidc:bob@example\.com" cannot patch resource "configmaps"/
  await next('kubectl --context prod-login label', 1, refused)
  end()
}
