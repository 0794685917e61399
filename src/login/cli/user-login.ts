// A login by the user: in the browser of this machine, or with a code that is typed on another device.

import { UserError } from '../../kit/api/validation/field-errors.ts'
import { printable } from '../../kit/core/text/printable.ts'
import type { RedirectAddress } from '../core/login-spec.ts'
import type { StoredTokens } from '../core/stored-tokens.ts'
import { hasBrowser, openBrowser } from '../io/browser.ts'
import type { Provider } from '../io/provider.ts'
import { listenForRedirect, type RedirectListener, type RedirectResponse } from '../io/redirect-listener.ts'

/** `auto`: the browser if this machine seems to have one. */
export const FLOWS = ['auto', 'browser', 'device'] as const

export interface AskUser {
  readonly spec: { readonly issuer: string; readonly redirect: RedirectAddress }
  readonly flow: (typeof FLOWS)[number]
  /** The program that opens a URL; '' = that of the system. */
  readonly browserCommand: string
  /** Aborts when the time for the login is over. */
  readonly signal: AbortSignal
  readonly err: (text: string) => void
}

/** @throws {UserError} */
export function logInByUser(provider: Provider, options: AskUser): Promise<StoredTokens> {
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
