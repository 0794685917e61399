// `portcullis logout`: revokes the refresh token at the provider, forgets the tokens, and names the page that ends the session of the browser.

import { type CommandOutput, reportUserErrors } from '../../cli/command/output.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { printable } from '../../kit/core/text/printable.ts'
import type { LoginSpec } from '../core/login-spec.ts'
import type { StoredTokens } from '../core/stored-tokens.ts'
import { openBrowser } from '../io/browser.ts'
import { lockLogin } from '../io/login-lock.ts'
import { type LogoutResult, withProvider } from '../io/provider.ts'
import { defaultTokenDir, readTokens, removeTokens, removeUnfinished, tokenFiles } from '../io/token-files.ts'

export interface LogoutOptions extends CommandOutput {
  /** Only the logins at this provider. Default: all. */
  readonly issuer?: string
  readonly clientSecret?: string
  readonly issuerCaFile?: string
  readonly tokenDir?: string
  /** Ends the session of the browser, too. */
  readonly browser: boolean
  readonly browserCommand?: string
  readonly now: () => number
}

const LOCK_TIMEOUT_MS = 10_000

/** Resolves with the exit code: 1 if a provider has not revoked a token that it could revoke. The tokens are forgotten in any case. */
export function logout(options: LogoutOptions): Promise<number> {
  const { issuer, tokenDir = defaultTokenDir(), out, err } = options
  return reportUserErrors(err, async () => {
    let [found, code] = [0, 0]
    for (const file of tokenFiles(tokenDir)) {
      const lock = await lockLogin(file, AbortSignal.timeout(LOCK_TIMEOUT_MS), () => undefined)
      try {
        removeUnfinished(file)
        const tokens = tokensToEnd(file, options)
        if (tokens === undefined) continue
        if (issuer !== undefined && tokens.issuer !== issuer) continue
        found++
        code = Math.max(code, await end(file, tokens, options))
      } finally {
        lock.release()
      }
    }
    if (found === 0) out(`no user is logged in${issuer === undefined ? '' : ` at ${issuer}`}\n`)
    return code
  })
}

/** A file with anything else goes, too. undefined = there is nothing to end at a provider. */
function tokensToEnd(file: string, { issuer, err }: LogoutOptions): StoredTokens | undefined {
  const { tokens, damaged } = readTokens(file)
  if (damaged && issuer === undefined) {
    removeTokens(file)
    err(`warning: ${file} did not hold tokens of this program; it is removed\n`)
  }
  return tokens
}

async function end(file: string, tokens: StoredTokens, options: LogoutOptions): Promise<number> {
  const { out, err } = options
  const who = `${printable(tokens.name)} at ${printable(tokens.issuer)}`
  // Forgotten first: whatever the provider answers, this machine has no credential any more.
  removeTokens(file)
  let result: LogoutResult
  try {
    result = await withProvider(specOf(tokens, options), options.now, (provider) => provider.logout(tokens))
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    err(`error: ${who}: logged out here, but not at the provider: ${error.message}; ${error.fix}\n`)
    return 1
  }
  out(`${who}: logged out${result.revoked ? ', the refresh token is revoked' : ''}\n`)
  await endSession(result.endSessionUrl, options)
  return 0
}

async function endSession(url: URL | undefined, { browser, browserCommand = '', out }: LogoutOptions): Promise<void> {
  if (url === undefined || !browser) return
  const opened = await openBrowser(url, browserCommand)
  if (!opened) out(`to end the session of the browser as well, open: ${url.href}\n`)
}

function specOf(
  { issuer, clientId }: StoredTokens,
  { clientSecret = '', issuerCaFile = '' }: LogoutOptions,
): LoginSpec {
  const redirect = { host: '127.0.0.1', port: 0, path: '/' }
  return { issuer, clientId, clientSecret, issuerCaFile, scopes: [], authParams: new Map(), redirect }
}
