// The OpenID provider, by openid-client (decision 80): discovery, the code and device flows, refresh and logout. All that comes from it is bounded, and every
// failure is one line that says where it came from.

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import * as openid from 'openid-client'
import { EnvHttpProxyAgent } from 'undici'
import { textOf } from '../../kit/api/json/object-shape.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { fetchBounded } from '../../kube/io/answers/fetch-bounded.ts'
import { type LoginSpec, scopeText } from '../core/login-spec.ts'
import { type StoredTokens, tokensOfClaims } from '../core/stored-tokens.ts'
import { providerError } from './provider-errors.ts'

/** Discovery documents have 10 KiB, tokens with many groups a few more. */
const MAX_ANSWER_BYTES = 1024 * 1024
const CALL_TIMEOUT_MS = 30_000
/** RFC 9110: such a response has no body, and `Response` refuses one. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

/** A login in the browser that has begun. */
export interface CodeRequest {
  /** Opened in the browser. */
  readonly url: URL
  readonly state: string
  /** @param redirected the URL at which the browser brought the code @throws {UserError} */
  finish(redirected: URL): Promise<StoredTokens>
}

/** A login with a code that is typed on another device (RFC 8628). */
export interface DeviceRequest {
  readonly userCode: string
  readonly verificationUri: string
  /** With the code in it; '' = the provider has none. */
  readonly completeUri: string
  /** @throws {UserError} */
  finish(signal: AbortSignal): Promise<StoredTokens>
}

export interface LogoutResult {
  /** The provider has revoked the refresh token. */
  readonly revoked: boolean
  /** Where the user ends the session of the browser; undefined = the provider has no such page. */
  readonly endSessionUrl: URL | undefined
}

export class Provider {
  readonly #spec: LoginSpec
  readonly #config: openid.Configuration
  readonly #now: () => number

  constructor(spec: LoginSpec, config: openid.Configuration, now: () => number) {
    this.#spec = spec
    this.#config = config
    this.#now = now
  }

  get hasDeviceFlow(): boolean {
    return this.#config.serverMetadata().device_authorization_endpoint !== undefined
  }

  async requestCode(redirectUri: string): Promise<CodeRequest> {
    const verifier = openid.randomPKCECodeVerifier()
    const [state, nonce] = [openid.randomState(), openid.randomNonce()]
    const challenge = await openid.calculatePKCECodeChallenge(verifier)
    const url = await this.#call('the login', () =>
      openid.buildAuthorizationUrl(this.#config, {
        ...Object.fromEntries(this.#spec.authParams),
        redirect_uri: redirectUri,
        response_type: 'code',
        scope: this.#scope,
        state,
        nonce,
        code_challenge: challenge,
        code_challenge_method: 'S256',
      }),
    )
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce }
    const finish = (redirected: URL): Promise<StoredTokens> =>
      this.#call('the login', async () =>
        this.#tokens(await openid.authorizationCodeGrant(this.#config, redirected, checks), ''),
      )
    return { url, state, finish }
  }

  async requestDevice(): Promise<DeviceRequest> {
    const parameters = { ...Object.fromEntries(this.#spec.authParams), scope: this.#scope }
    const asked = await this.#call('the device login', () =>
      openid.initiateDeviceAuthorization(this.#config, parameters),
    )
    return {
      userCode: asked.user_code,
      verificationUri: asked.verification_uri,
      completeUri: asked.verification_uri_complete ?? '',
      finish: (signal) =>
        this.#call('the device login', async () =>
          this.#tokens(await openid.pollDeviceAuthorizationGrant(this.#config, asked, undefined, { signal }), ''),
        ),
    }
  }

  /** undefined = the refresh token is not accepted any more, or brings no ID token. @throws {UserError} if the provider is away, or names another user */
  async refresh({ refreshToken, subject }: StoredTokens): Promise<StoredTokens | undefined> {
    const answer = await this.#call('the refresh', async () => {
      try {
        return await openid.refreshTokenGrant(this.#config, refreshToken)
      } catch (error) {
        if (error instanceof openid.ResponseBodyError && error.error === 'invalid_grant') return undefined
        throw error
      }
    })
    if (answer?.id_token === undefined) return undefined
    const fresh = this.#tokens(answer, refreshToken)
    // OpenID Connect Core, section 12.2.
    if (fresh.subject === subject) return fresh
    throw new UserError(
      `the refresh at ${this.#spec.issuer} returned the token of another user`,
      'tell the operators of the provider; portcullis logout deletes the login',
    )
  }

  /** The provider may have neither revocation nor a page. @throws {UserError} */
  async logout({ refreshToken }: StoredTokens): Promise<LogoutResult> {
    const { revocation_endpoint: revocation, end_session_endpoint: end } = this.#config.serverMetadata()
    const revoked = revocation !== undefined && refreshToken !== ''
    if (revoked) {
      const parameters = { token_type_hint: 'refresh_token' }
      await this.#call('the logout', () => openid.tokenRevocation(this.#config, refreshToken, parameters))
    }
    // Without id_token_hint: arguments of programs, and terminals, show a token to others. The provider may ask the user to confirm.
    const endSessionUrl =
      end === undefined ? undefined : await this.#call('the logout', () => openid.buildEndSessionUrl(this.#config))
    return { revoked, endSessionUrl }
  }

  get #scope(): string {
    const supported: unknown = this.#config.serverMetadata().scopes_supported
    return scopeText(this.#spec, Array.isArray(supported) ? supported.map(textOf) : undefined)
  }

  /** @param refreshToken the one used; many providers keep it */
  #tokens(
    answer: openid.TokenEndpointResponse & openid.TokenEndpointResponseHelpers,
    refreshToken: string,
  ): StoredTokens {
    const { id_token: idToken } = answer
    const claims = answer.claims()
    if (idToken === undefined || claims === undefined) {
      throw new UserError(
        `${this.#spec.issuer} gave no ID token`,
        'is openid among the scopes that the client may use?',
      )
    }
    const { issuer, clientId } = this.#spec
    return tokensOfClaims(idToken, claims, answer.refresh_token ?? refreshToken, {
      issuer,
      clientId,
      nowMs: this.#now(),
    })
  }

  /** URLs, too: openid-client refuses those that are not https://, and the system would open `file:` and whatever else a program is registered for. */
  async #call<T>(what: string, action: () => Promise<T> | T): Promise<T> {
    try {
      return await action()
    } catch (error) {
      throw providerError(error, what, this.#spec.issuer)
    }
  }
}

/** Calls `use` with the provider, whose connections end with it. @throws {UserError} */
export async function withProvider<T>(
  spec: LoginSpec,
  now: () => number,
  use: (provider: Provider) => Promise<T>,
): Promise<T> {
  const { fetch, close } = connections(spec)
  try {
    return await use(new Provider(spec, await discover(spec, fetch), now))
  } finally {
    await close()
  }
}

async function discover(spec: LoginSpec, fetch: openid.CustomFetch): Promise<openid.Configuration> {
  const { issuer, clientId, clientSecret } = spec
  const auth = clientSecret === '' ? openid.None() : openid.ClientSecretPost(clientSecret)
  try {
    return await openid.discovery(new URL(issuer), clientId, undefined, auth, {
      [openid.customFetch]: fetch,
      timeout: CALL_TIMEOUT_MS / 1000,
    })
  } catch (error) {
    throw providerError(error, 'discovery', issuer)
  }
}

interface Connections {
  readonly fetch: openid.CustomFetch
  close(): Promise<void>
}

/** TLS by the CAs of Node and of this machine, where companies put their own; through the proxy of the environment, if it names one. */
function connections({ issuerCaFile }: LoginSpec): Connections {
  const own = issuerCaFile === '' ? [] : [readCa(issuerCaFile)]
  const ca = new Set([...getCACertificates('default'), ...getCACertificates('system'), ...own])
  // Once for all calls: reading hundreds of certificates takes longer than a handshake.
  const tls = { secureContext: createSecureContext({ ca: [...ca] }) }
  const agent = proxyAgent(tls)
  return {
    fetch: async (url, { method, headers, body, signal = AbortSignal.timeout(CALL_TIMEOUT_MS) }) => {
      const sent = body === null || body === undefined ? undefined : body instanceof Uint8Array ? body : String(body)
      const answer = await fetchBounded(url, {
        method,
        headers,
        body: sent,
        tls,
        signal,
        ...(agent !== undefined && { connections: agent }),
      })
      const bytes = await answer.whole(MAX_ANSWER_BYTES)
      const type = answer.header('content-type')
      return new Response(WITHOUT_BODY.has(answer.code) ? null : new Uint8Array(bytes), {
        status: answer.code,
        headers: type === '' ? {} : { 'content-type': type },
      })
    },
    close: async () => agent?.destroy(),
  }
}

const PROXY_SCHEMES: readonly string[] = ['http:', 'https:', 'socks5:', 'socks:']

/** undefined = the environment names no proxy. @throws {UserError} without what it names: a password may be in it */
function proxyAgent(tls: { readonly secureContext: SecureContext }): EnvHttpProxyAgent | undefined {
  const name = ['https_proxy', 'HTTPS_PROXY'].find((one) => (process.env[one] ?? '') !== '')
  if (name === undefined) return undefined
  const given = process.env[name] ?? ''
  // As curl takes it: HOST:PORT.
  const proxy = given.includes('://') ? given : `http://${given}`
  const scheme = URL.canParse(proxy) ? new URL(proxy).protocol : ''
  try {
    if (!PROXY_SCHEMES.includes(scheme)) throw new Error('not the URL of one')
    // All calls are of https://; HTTP_PROXY, which may be wrong, is not read.
    const options = { connect: tls, requestTls: tls, allowH2: false, httpProxy: proxy, httpsProxy: proxy }
    return new EnvHttpProxyAgent(scheme === 'https:' ? { ...options, proxyTls: tls } : options)
  } catch {
    throw new UserError(`${name} names no proxy`, 'write http://HOST:PORT, with a user and a password percent-encoded')
  }
}

/** @throws {UserError} for a file without a certificate, which OpenSSL would ignore */
function readCa(file: string): string {
  try {
    const text = readFileSync(file, 'utf8')
    void new X509Certificate(text)
    return text
  } catch (error) {
    throw new UserError(`--issuer-ca-file: cannot read ${file}: ${errorMessage(error)}`, 'name a file of PEM')
  }
}
