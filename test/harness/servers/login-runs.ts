// Runs `portcullis login` and `logout` in the test, with a browser that is the test's: what it does with the URL of a login is a function.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type LoginOptions, login } from '../../../src/login/cli/login.ts'
import { logout } from '../../../src/login/cli/logout.ts'
import { OIDC_CLIENT, type OidcIssuer } from './oidc-issuer.ts'
import { TestBrowser } from './test-browser.ts'

export const EXEC_INFO_TEXT = JSON.stringify({
  apiVersion: 'client.authentication.k8s.io/v1',
  kind: 'ExecCredential',
  spec: { interactive: true },
})

export interface LoginRun {
  readonly code: number
  readonly out: string
  readonly err: string
  /** What the browser showed at the end, for each login. */
  readonly pages: readonly string[]
}

export interface RunOptions extends Partial<LoginOptions> {
  /** Resolves with the last page. Default: alice logs in. */
  readonly browse?: (url: string, browser: TestBrowser) => Promise<string>
}

/** A directory of tokens for each test. */
export class LoginRuns {
  readonly dir = mkdtempSync(join(tmpdir(), 'portcullis-login-'))
  readonly #issuer: Pick<OidcIssuer, 'url' | 'caFile'>

  constructor(issuer: Pick<OidcIssuer, 'url' | 'caFile'>) {
    this.#issuer = issuer
  }

  async login({ browse = logIn, ...options }: RunOptions = {}): Promise<LoginRun> {
    const { url: issuer, caFile } = this.#issuer
    const [out, err]: [string[], string[]] = [[], []]
    const pages: Promise<string>[] = []
    const code = await login({
      issuer,
      clientId: OIDC_CLIENT,
      scope: [],
      authParam: ['login_hint=alice'],
      redirectUrl: 'http://127.0.0.1/callback',
      issuerCaFile: caFile,
      flow: 'browser',
      // There is no such program, so the URL is printed.
      browserCommand: join(this.dir, 'no-browser'),
      tokenDir: this.dir,
      timeout: '30s',
      force: false,
      output: 'auto',
      execInfo: EXEC_INFO_TEXT,
      now: Date.now,
      out: (text) => void out.push(text),
      err: (text) => {
        err.push(text)
        const [, url] = /^(?:log in with a browser on this machine: |\(or open )(\S+?)\)?\n$/.exec(text) ?? []
        if (url !== undefined) pages.push(browse(url, new TestBrowser(readFileSync(caFile, 'utf8'))))
      },
      ...options,
    })
    return { code, out: out.join(''), err: err.join(''), pages: await Promise.all(pages) }
  }

  async logout(options: { readonly issuer?: string } = {}): Promise<Omit<LoginRun, 'pages'>> {
    const [out, err]: [string[], string[]] = [[], []]
    const code = await logout({
      issuerCaFile: this.#issuer.caFile,
      tokenDir: this.dir,
      browser: true,
      browserCommand: join(this.dir, 'no-browser'),
      now: Date.now,
      out: (text) => void out.push(text),
      err: (text) => void err.push(text),
      ...options,
    })
    return { code, out: out.join(''), err: err.join('') }
  }

  /** The one file of tokens; '' = there is none. */
  get file(): string {
    const [name] = readdirSync(this.dir).filter((one) => one.endsWith('.json'))
    return name === undefined ? '' : join(this.dir, name)
  }

  remove(): void {
    rmSync(this.dir, { recursive: true, force: true })
  }
}

export async function logIn(url: string, browser: TestBrowser): Promise<string> {
  return (await browser.open(url)).text
}

/** The claims of the token in an ExecCredential. */
export function claimsOf(credential: string): Readonly<Record<string, unknown>> {
  const { status } = JSON.parse(credential) as { status: { token: string } }
  const [, payload = ''] = status.token.split('.')
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
}
