// What went wrong at the provider, as one line with its fix. Texts of the provider are untrusted: they go to a terminal.

import { AuthorizationResponseError, ClientError, ResponseBodyError } from 'openid-client'
import { mismatchOf } from '../../cli/io/admin-request.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { printable } from '../../kit/core/text/printable.ts'
import { faultCode, faultText } from '../../kube/io/answers/fetch-bounded.ts'

/** A description by the provider may be long. */
const MAX_TEXT = 300

/** The provider cannot be reached, or cannot answer: later it may. */
export class ProviderAway extends UserError {}

/** What the errors of OAuth and OpenID Connect usually come from (RFC 6749, RFC 8628, OpenID Connect Core). */
const FIXES: Readonly<Record<string, string>> = {
  access_denied: 'the login was refused: ask who assigns users to this client at the provider',
  expired_token: 'the code was not entered in time; try again',
  invalid_client: 'check --client-id; a client with a secret needs --client-secret',
  invalid_grant: 'log in again: the code was used before, or arrived too late',
  invalid_redirect_uri: 'register exactly this --redirect-url at the provider',
  invalid_request: 'compare --redirect-url and --auth-param with what is registered at the provider',
  invalid_scope: 'give only scopes that this client may use with --scope',
  unauthorized_client: 'allow this flow (authorization code, device code, refresh) for the client at the provider',
}
/** @param what was tried: `the refresh` */
export function providerError(error: unknown, what: string, issuer: string): unknown {
  if (error instanceof UserError) return error
  const at = `${what} at ${issuer}`
  if (error instanceof ResponseBodyError || error instanceof AuthorizationResponseError) {
    const { error: code, error_description: text = '' } = error
    if (error instanceof ResponseBodyError && error.status >= 500) return away(at, `it answers ${error.status}`)
    const said = shown(text === '' ? code : `${code}: ${text}`)
    return new UserError(`${at} was refused: ${said}`, FIXES[code] ?? 'ask the operators of the provider')
  }
  const code = faultCode(error)
  // What a document of the provider has in a wrong type, openid-client calls a wrong argument.
  if (code.startsWith('ERR_INVALID_ARG_')) return unlike(at, errorMessage(error))
  if (!(error instanceof ClientError) && !code.startsWith('OAUTH_')) {
    return isFault(error) ? away(at, faultText(error)) : error
  }
  const { cause } = error as Error
  if (cause instanceof Response) return unexpectedStatus(at, what, cause.status)
  // openid-client wraps whatever the connection threw.
  if (!code.startsWith('OAUTH_') || code === 'OAUTH_TIMEOUT' || code === 'OAUTH_ABORT') {
    return unreachable(at, cause ?? error)
  }
  const reason = errorMessage(cause instanceof Error ? cause : error)
  if (code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED') {
    return new UserError(
      `${at}: the ID token is not valid at this time: ${shown(reason)}`,
      'check the clock of this machine',
    )
  }
  if (code === 'OAUTH_HTTP_REQUEST_FORBIDDEN') return unlike(at, 'it names an address that is not https://')
  if (what === 'discovery' && code === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED') {
    return new UserError(`${issuer} calls itself ${issuerNamed(cause)}`, 'write --issuer exactly as the provider does')
  }
  return unlike(at, reason)
}

function unlike(at: string, reason: string): UserError {
  return new UserError(
    `${at}: its answer is not that of this login: ${shown(reason)}`,
    'log in again; if it happens again, tell the operators of the provider',
  )
}

function unreachable(at: string, cause: unknown): UserError {
  if (mismatchOf(cause) === 'untrusted') {
    return new UserError(`${at}: its certificate is not signed by a known CA`, 'give its CA with --issuer-ca-file')
  }
  return away(at, faultText(cause))
}

function away(at: string, reason: string): ProviderAway {
  return new ProviderAway(`${at} failed: ${shown(reason)}`, 'check --issuer and the network, and try again')
}

function unexpectedStatus(at: string, what: string, status: number): UserError {
  if (status >= 500 || status === 429) return away(at, `it answers ${status}`)
  const fix =
    what === 'discovery'
      ? 'check --issuer: /.well-known/openid-configuration below it must be there'
      : 'ask the operators of the provider'
  return new UserError(`${at} failed: it answers ${status}`, fix)
}

function issuerNamed(cause: unknown): string {
  const body: unknown = typeof cause === 'object' && cause !== null ? Reflect.get(cause, 'body') : undefined
  const issuer: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, 'issuer') : undefined
  return shown(String(issuer))
}

/** An error of the system, of OpenSSL or of undici, and not a bug. */
function isFault(error: unknown): boolean {
  return (
    error instanceof Error && (faultCode(error) !== '' || error.name === 'TimeoutError' || error.name === 'AbortError')
  )
}

function shown(text: string): string {
  const line = printable(text.replaceAll(/\s+/g, ' ').trim())
  return line.length > MAX_TEXT ? `${line.slice(0, MAX_TEXT)}…` : line
}
