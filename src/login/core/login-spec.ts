// Which login is meant: a client of a provider, and what is asked of it. It stands in the arguments of a kubeconfig, so it is read from flags.

import { UserError } from '../../kit/api/validation/field-errors.ts'

export interface LoginFlags {
  readonly issuer?: string
  readonly clientId?: string
  readonly clientSecret?: string
  readonly scope: readonly string[]
  readonly authParam: readonly string[]
  readonly redirectUrl: string
  readonly issuerCaFile?: string
}

export interface LoginSpec {
  /** As given, which is how the `iss` of its tokens spells it. */
  readonly issuer: string
  readonly clientId: string
  /** '' = none: a public client, which PKCE protects. */
  readonly clientSecret: string
  /** Empty = those of DEFAULT_SCOPES that the provider has. */
  readonly scopes: readonly string[]
  /** Further parameters of the authorization request. */
  readonly authParams: ReadonlyMap<string, string>
  readonly redirect: RedirectAddress
  /** '' = none. */
  readonly issuerCaFile: string
}

/** Where the browser brings the code: a loopback address of this machine (RFC 8252, section 7.3). */
export interface RedirectAddress {
  /** As the provider knows it; RFC 8252 has it ignore the port of an IP address. */
  readonly host: string
  /** 0 = any that is free. */
  readonly port: number
  readonly path: string
}

/** `openid` is what makes it a login; the others bring a refresh token, and what API servers take for the names of users and groups. */
export const DEFAULT_SCOPES: readonly string[] = ['openid', 'offline_access', 'email', 'profile', 'groups']
export const DEFAULT_REDIRECT = 'http://127.0.0.1/callback'
const LOOPBACK: readonly string[] = ['127.0.0.1', '[::1]', 'localhost']
/** They make the request safe, so no flag replaces them. */
const RESERVED: ReadonlySet<string> = new Set([
  ...['client_id', 'code_challenge', 'code_challenge_method', 'nonce', 'redirect_uri'],
  ...['request', 'request_uri', 'response_mode', 'response_type', 'scope', 'state'],
])

/** @param prefix of the flags: `login-` of those of another command @throws {UserError} */
export function readLoginSpec(flags: LoginFlags, prefix = ''): LoginSpec {
  const { issuer = '', clientId = '', clientSecret = '', issuerCaFile = '' } = flags
  const flag = (name: string): string => `--${prefix}${name}`
  checkIssuer(issuer, flag('issuer'))
  if (clientId === '') {
    throw new UserError(`${flag('client-id')} is missing`, 'give the ID under which the provider knows this client')
  }
  const scopes = flags.scope.flatMap((text) => text.split(/[\s,]+/)).filter((scope) => scope !== '')
  if (scopes.length > 0 && !scopes.includes('openid')) {
    throw new UserError(
      `${flag('scope')} has no openid, so the provider would give no ID token`,
      `add ${flag('scope')} openid`,
    )
  }
  const authParams = new Map(flags.authParam.map((text) => authParamOf(text, flag('auth-param'))))
  const redirect = redirectAddressOf(flags.redirectUrl, flag('redirect-url'))
  return { issuer, clientId, clientSecret, scopes, authParams, redirect, issuerCaFile }
}

function checkIssuer(issuer: string, flag: string): void {
  if (issuer === '') throw new UserError(`${flag} is missing`, 'give the URL of the OpenID provider')
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  // OpenID Connect Core, section 2: no query and no fragment.
  if (url?.protocol === 'https:' && url.search === '' && url.hash === '' && url.username === '') return
  throw new UserError(
    `${flag} is not https://HOST[/PATH]: ${JSON.stringify(issuer)}`,
    'write it as the provider does in its discovery document',
  )
}

function authParamOf(text: string, flag: string): [string, string] {
  const [, name = '', value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (name === '') throw new UserError(`${flag} is not NAME=VALUE: ${JSON.stringify(text)}`, 'such as prompt=login')
  if (!RESERVED.has(name)) return [name, value]
  throw new UserError(`${flag} may not set ${name}`, 'leave it out: the login sets it itself')
}

function redirectAddressOf(text: string, flag: string): RedirectAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' || !LOOPBACK.includes(url.hostname) || url.search !== '' || url.hash !== '') {
    throw new UserError(
      `${flag} is not http://127.0.0.1[:PORT]/PATH: ${JSON.stringify(text)}`,
      'name a loopback address as it is registered at the provider: 127.0.0.1, [::1] or localhost',
    )
  }
  // A URL has no port where it is that of the scheme.
  const port = url.port === '' ? (/^http:\/\/[^/]+:80(\/|$)/i.test(text) ? 80 : 0) : Number(url.port)
  return { host: url.hostname, port, path: url.pathname }
}

/** Two logins of one key may use the same tokens. */
export function loginKey({ issuer, clientId, scopes, authParams }: LoginSpec): string {
  const params = [...authParams].map(([name, value]) => `${name}=${value}`)
  return JSON.stringify([issuer, clientId, scopes, params])
}

/** What the login asks of a provider with these scopes; undefined = it does not say which it has. */
export function scopeText({ scopes }: LoginSpec, supported: readonly string[] | undefined): string {
  if (scopes.length > 0) return scopes.join(' ')
  if (supported === undefined) return 'openid'
  return DEFAULT_SCOPES.filter((scope) => scope === 'openid' || supported.includes(scope)).join(' ')
}
