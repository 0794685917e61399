// `portcullis login`: a credential for kubectl and other clients, which run it as their exec plugin; run by a user, it says who is logged in.

import { type CommandOutput, reportUserErrors } from '../../cli/command/output.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { printable } from '../../kit/core/text/printable.ts'
import { execApiVersion, execCredential } from '../core/exec-credential.ts'
import { type LoginFlags, type LoginSpec, loginKey, type RedirectAddress, readLoginSpec } from '../core/login-spec.ts'
import { clientExpiryMs, type StoredTokens, usableUntilMs } from '../core/stored-tokens.ts'
import { hasBrowser, openBrowser } from '../io/browser.ts'
import { execInfo } from '../io/exec-info.ts'
import { lockLogin } from '../io/login-lock.ts'
import { type Provider, withProvider } from '../io/provider.ts'
import { ProviderAway } from '../io/provider-errors.ts'
import { listenForRedirect, type RedirectListener, type RedirectResponse } from '../io/redirect-listener.ts'
import { defaultTokenDir, prepareTokenDir, readTokens, tokenFile, writeTokens } from '../io/token-files.ts'

export interface LoginOptions extends LoginFlags, CommandOutput {
  readonly flow: (typeof FLOWS)[number]
  readonly browserCommand?: string
  readonly tokenDir?: string
  readonly timeout: string
  readonly force: boolean
  /** `auto`: `exec` if a client has started this command. */
  readonly output: 'auto' | 'exec' | 'text'
  readonly now: () => number
  /** The value of KUBERNETES_EXEC_INFO. Default: that of the environment. */
  readonly execInfo?: string
}

/** How long the user may take, where no flag says so. */
const LOGIN_TIMEOUT_MS = 180_000

/** Resolves with the exit code. */
export function login(options: LoginOptions): Promise<number> {
  const { output, out, err, now } = options
  return reportUserErrors(err, async () => {
    const info = options.execInfo ?? execInfo()
    const apiVersion = execApiVersion(info)
    const asCredential = output === 'exec' || (output === 'auto' && info !== '')
    const spec = readLoginSpec(options)
    const { tokenDir = defaultTokenDir(), browserCommand = '', flow, force } = options
    const signal = AbortSignal.timeout(timeoutOf(options.timeout))
    const tokens = await obtainTokens({ spec, tokenDir, force, flow, browserCommand, signal, err, now })
    if (asCredential) out(execCredential(apiVersion, tokens.idToken, clientExpiryMs(tokens, now())))
    else {
      const until = new Date(tokens.expiresAtMs).toISOString()
      const then = tokens.refreshToken === '' ? 'then the login is needed again' : 'renewed when it is needed'
      out(`logged in at ${spec.issuer} as ${printable(tokens.name)}: the token is valid until ${until}, ${then}\n`)
    }
    return 0
  })
}

/** The ID token of a login that other commands name by their flags. @throws {UserError} */
export async function ownIdToken(flags: LoginFlags, { err, now }: Pick<LoginOptions, 'err' | 'now'>): Promise<string> {
  const spec = readLoginSpec(flags, 'login-')
  const signal = AbortSignal.timeout(LOGIN_TIMEOUT_MS)
  const how = { tokenDir: defaultTokenDir(), force: false, flow: 'auto', browserCommand: '' } as const
  return (await obtainTokens({ spec, ...how, signal, err, now })).idToken
}

function timeoutOf(text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms > 0 && ms <= 3_600_000) return ms
  throw new UserError(`--timeout ${JSON.stringify(text)} is not a duration up to 1h`, 'such as --timeout 3m')
}

// The tokens of a login: those in the file while they are valid, else fresh ones by the refresh token, else a login by the user. One command at a time
// asks the provider.

interface ObtainOptions extends AskUser {
  readonly spec: LoginSpec
  readonly tokenDir: string
  /** Log in even if there are tokens. */
  readonly force: boolean
  readonly now: () => number
}

/** @throws {UserError} */
async function obtainTokens(options: ObtainOptions): Promise<StoredTokens> {
  const { spec, tokenDir, force, err, signal } = options
  prepareTokenDir(tokenDir)
  const file = tokenFile(tokenDir, loginKey(spec))
  const before = readTokens(file).tokens
  if (!force && isUsable(before, options)) return before
  const lock = await lockLogin(file, signal, () => err('waiting for another login of this user\n'))
  try {
    const { tokens, damaged } = readTokens(file)
    if (damaged) err(`warning: ${file} does not hold tokens of this program; it is overwritten\n`)
    // While this command waited, another one has logged in.
    const isNew = lock.waited && tokens?.idToken !== before?.idToken
    if ((!force || isNew) && isUsable(tokens, options)) return tokens
    const fresh = await renewAt(tokens, lock.waited, options)
    if (fresh !== tokens) writeTokens(file, fresh)
    return fresh
  } finally {
    lock.release()
  }
}

function isUsable(tokens: StoredTokens | undefined, { now }: ObtainOptions): tokens is StoredTokens {
  return tokens !== undefined && usableUntilMs(tokens) > now()
}

/** A token that is still valid for a moment stays in use while its provider is away. */
async function renewAt(
  tokens: StoredTokens | undefined,
  waited: boolean,
  options: ObtainOptions,
): Promise<StoredTokens> {
  const { spec, now, force, err } = options
  try {
    return await withProvider(spec, now, (provider) => renew(provider, tokens, waited, options))
  } catch (error) {
    if (!(error instanceof ProviderAway) || force || tokens === undefined || tokens.expiresAtMs <= now()) throw error
    err(`warning: ${error.message}; the token is not renewed yet\n`)
    return tokens
  }
}

async function renew(
  provider: Provider,
  tokens: StoredTokens | undefined,
  waited: boolean,
  options: ObtainOptions,
): Promise<StoredTokens> {
  const { force, err, spec } = options
  if (!force && tokens !== undefined && tokens.refreshToken !== '') {
    const fresh = await provider.refresh(tokens)
    if (fresh !== undefined) return fresh
    err(`the login of ${printable(tokens.name)} at ${spec.issuer} has ended: the provider does not refresh it\n`)
  }
  // The user has refused, or closed, the login of that command; another page would come for each command that waits.
  if (waited && !force) {
    throw new UserError('the login that this command waited for did not succeed', 'run the command again')
  }
  return logInByUser(provider, options)
}

// A login by the user: in the browser of this machine, or with a code that is typed on another device.

/** `auto`: the browser if this machine seems to have one. */
const FLOWS = ['auto', 'browser', 'device'] as const

interface AskUser {
  readonly spec: { readonly issuer: string; readonly redirect: RedirectAddress }
  readonly flow: (typeof FLOWS)[number]
  /** The program that opens a URL; '' = that of the system. */
  readonly browserCommand: string
  /** Aborts when the time for the login is over. */
  readonly signal: AbortSignal
  readonly err: (text: string) => void
}

/** @throws {UserError} */
function logInByUser(provider: Provider, options: AskUser): Promise<StoredTokens> {
  const { flow } = options
  if (flow === 'device') return byDevice(provider, options)
  return flow === 'auto' && !hasBrowser() && provider.hasDeviceFlow
    ? byDevice(provider, options)
    : byBrowser(provider, options)
}

async function byBrowser(provider: Provider, options: AskUser): Promise<StoredTokens> {
  const { spec, browserCommand, signal, err } = options
  const listener = await listenForRedirect(spec.redirect)
  try {
    const request = await provider.requestCode(listener.redirectUri)
    const arrival = redirected(listener, request.state, signal)
    // Awaited below, when the browser has been started.
    arrival.catch(() => undefined)
    const opened = await openBrowser(request.url, browserCommand)
    err(
      `${opened ? 'continue in the browser; if it has not opened, open' : 'log in with a browser on this machine'}: ${request.url.href}\n`,
    )
    return await finish(await arrival, request.finish)
  } finally {
    listener.close()
  }
}

async function redirected(listener: RedirectListener, state: string, signal: AbortSignal): Promise<RedirectResponse> {
  try {
    return await listener.response(state, signal)
  } catch (error) {
    if (!signal.aborted) throw error
    const { strayed } = listener
    const others = strayed === 0 ? '' : ` (${strayed} answers with a different state were refused)`
    throw new UserError(`the login was not completed in time${others}`, 'try again, or give --timeout')
  }
}

async function finish(
  { url, show }: RedirectResponse,
  exchange: (redirected: URL) => Promise<StoredTokens>,
): Promise<StoredTokens> {
  try {
    const tokens = await exchange(url)
    await show(true, 'You can close this page and go back to the terminal.')
    return tokens
  } catch (error) {
    await show(false, 'The terminal says why. You can close this page.')
    throw error
  }
}

async function byDevice(provider: Provider, { spec, signal, err }: AskUser): Promise<StoredTokens> {
  if (!provider.hasDeviceFlow) {
    throw new UserError(`${spec.issuer} has no device login`, 'log in with the browser: --flow browser')
  }
  const { userCode, verificationUri, completeUri, finish: poll } = await provider.requestDevice()
  err(`open ${printable(verificationUri)} on any device, and enter the code ${printable(userCode)}\n`)
  if (completeUri !== '') err(`(or open ${printable(completeUri)})\n`)
  try {
    return await poll(signal)
  } catch (error) {
    if (!signal.aborted) throw error
    throw new UserError('the login was not completed in time', 'try again, or give --timeout')
  }
}
