// A real OpenID provider (oidc-provider) over https inside the test: people log in by the authorization code flow with PKCE, as with
// `kubectl oidc-login`. It can rotate its keys, and go away.

import { createHash, generateKeyPairSync, type JsonWebKey, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { importJWK, type JWTHeaderParameters, SignJWT } from 'jose'
import { createCA } from '../../../src/pki/io/pki.ts'
import { serverCertificate } from '../pki.ts'
import { TestBrowser } from './test-browser.ts'

export const OIDC_CLIENT = 'kubernetes'

export interface OidcIssuer {
  readonly url: string
  /** PEM of the CA that signed its certificate. */
  readonly caFile: string
  /** How often it was asked for its keys. */
  readonly keyRequests: number
  /** Requests by their path: `/token`. */
  readonly requests: ReadonlyMap<string, number>
  /** The ID token of a login. @param browser keeps the session. Default: it is forgotten */
  login(user: string, browser?: TestBrowser): Promise<string>
  /** Ends the session of the browser, at the provider's own page. */
  endSession(browser: TestBrowser): Promise<void>
  /** A token signed with its current key: claims and header over those of a good one. `undefined` removes one. */
  sign(claims?: Readonly<Record<string, unknown>>, header?: Readonly<Record<string, unknown>>): Promise<string>
  /** Another key; the one before is withdrawn. */
  rotate(): void
  /** Does not answer until `back`. */
  away(): Promise<void>
  back(): Promise<void>
  stop(): Promise<void>
}

export interface OidcIssuerOptions {
  /** Claims of people, by name. */
  readonly people?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Default RS256. */
  readonly alg?: 'RS256' | 'ES256' | 'PS256'
  /** Validity of its tokens in seconds. Default: an hour, and two weeks. */
  readonly idTokenTtl?: number
  readonly refreshTokenTtl?: number
  /** Default: none, and a public client. */
  readonly clientSecret?: string
  /** Sends the form of a back-channel logout to the client, and resolves with the status code. Default: the client is not told of logouts. */
  readonly tellOfLogout?: (form: string) => Promise<number>
}

const REDIRECT = 'http://127.0.0.1:8000/callback'
const SCOPES = 'openid email groups'

/** As far as it is used here: the package has no types. */
interface Provider {
  callback(): RequestListener
  interactionDetails(...exchange: Parameters<RequestListener>): Promise<{ params: Record<string, string> }>
  interactionFinished(request: unknown, response: unknown, result: object): Promise<void>
  readonly Grant: new (of: object) => { addOIDCScope(scope: string): void; save(): Promise<string> }
}

interface FlowContext {
  readonly oidc: {
    readonly provider: Provider
    readonly client: { readonly clientId: string }
    readonly session: { readonly accountId: string }
  }
}

export async function startOidcIssuer(options: OidcIssuerOptions = {}): Promise<OidcIssuer> {
  const {
    people = {},
    alg = 'RS256',
    idTokenTtl = 3600,
    refreshTokenTtl = 1_209_600,
    clientSecret,
    tellOfLogout,
  } = options
  const name = 'oidc-provider'
  const { default: Provider } = (await import(name)) as { default: new (issuer: string, options: object) => Provider }
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-oidc-'))
  const ca = createCA({ commonName: 'test login CA' })
  const caFile = join(dir, 'ca.crt')
  writeFileSync(caFile, ca.certPem)
  const { certPem: cert, keyPem: key } = serverCertificate(ca, ['localhost'], ['127.0.0.1'])
  let signingKey: JsonWebKey = {}
  let provider: Provider | undefined
  let keyRequests = 0
  const requests = new Map<string, number>()
  const handler: RequestListener = (request, response) => {
    const [path = ''] = (request.url ?? '').split('?')
    requests.set(path, (requests.get(path) ?? 0) + 1)
    if (path === '/jwks') keyRequests++
    if (provider === undefined) return
    if (request.url?.startsWith('/interaction/') === true) void logIn(provider, request, response)
    else void provider.callback()(request, response)
  }
  const server = createServer({ cert, key }, handler)
  const port = await listen(server, 0)
  const url = `https://localhost:${port}`
  const rotate = (): void => {
    signingKey = newKey(alg)
    provider = new Provider(url, {
      jwks: { keys: [signingKey] },
      clients: [
        {
          client_id: OIDC_CLIENT,
          application_type: 'native',
          ...(clientSecret === undefined
            ? { token_endpoint_auth_method: 'none' }
            : { token_endpoint_auth_method: 'client_secret_post', client_secret: clientSecret }),
          grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
          // With any port (RFC 8252, section 7.3).
          redirect_uris: [REDIRECT, 'http://127.0.0.1/callback', 'http://localhost:4180/callback'],
          id_token_signed_response_alg: alg,
          ...(tellOfLogout !== undefined && {
            backchannel_logout_uri: 'https://gateway.example.com/clusters/-/backchannel-logout',
            backchannel_logout_session_required: true,
          }),
        },
      ],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups', 'team'] },
      // In the ID token, as kube-apiserver wants them.
      conformIdTokenClaims: false,
      features: {
        devInteractions: { enabled: false },
        deviceFlow: { enabled: true },
        revocation: { enabled: true },
        rpInitiatedLogout: { enabled: true },
        backchannelLogout: { enabled: tellOfLogout !== undefined },
      },
      ...(tellOfLogout !== undefined && {
        fetch: async (_url: string, { body }: { body: unknown }) =>
          new Response(null, { status: await tellOfLogout(String(body)) }),
      }),
      scopes: ['openid', 'offline_access'],
      // Also without offline_access, as Keycloak.
      issueRefreshToken: () => true,
      expiresWithSession: () => false,
      interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      ttl: {
        ...{ AccessToken: 600, DeviceCode: 600, Grant: 1_209_600, IdToken: idTokenTtl, Interaction: 600 },
        ...{ RefreshToken: refreshTokenTtl, Session: 600 },
      },
      cookies: { keys: [randomBytes(16).toString('hex')] },
      findAccount: (_context: unknown, sub: string) => ({
        accountId: sub,
        claims: () => ({ sub, ...(people[sub] ?? {}) }),
      }),
      async loadExistingGrant({ oidc }: FlowContext) {
        const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId })
        grant.addOIDCScope(`${SCOPES} offline_access`)
        await grant.save()
        return grant
      },
    })
  }
  rotate()
  return {
    url,
    caFile,
    requests,
    get keyRequests() {
      return keyRequests
    },
    login: (user, browser = new TestBrowser(ca.certPem)) => logInAs(url, browser, user),
    async endSession(browser) {
      const page = await browser.open(`${url}/session/end`)
      const { status, text } = await browser.submit(page, { logout: 'yes' })
      if (status !== 200) throw new Error(text)
    },
    async sign(claims = {}, header = {}) {
      const now = Math.floor(Date.now() / 1000)
      const complete = { iss: url, aud: OIDC_CLIENT, sub: 'alice', iat: now, exp: now + 3600, ...claims }
      const own = { alg, kid: signingKey['kid'], ...header } as JWTHeaderParameters
      return new SignJWT(complete).setProtectedHeader(own).sign(await importJWK(signingKey, own.alg))
    },
    rotate,
    async away() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => void server.close(() => resolve()))
    },
    async back() {
      await listen(server, port)
    },
    async stop() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => void server.close(() => resolve()))
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function newKey(alg: string): JsonWebKey {
  const { privateKey } =
    alg === 'ES256'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { ...privateKey.export({ format: 'jwk' }), kid: randomBytes(8).toString('hex'), use: 'sig', alg }
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.removeListener('error', reject)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

/** The login page: it signs in the user of the client's login_hint. */
async function logIn(provider: Provider, ...[request, response]: Parameters<RequestListener>): Promise<void> {
  const { params } = await provider.interactionDetails(request, response)
  const login = { accountId: params['login_hint'] }
  await provider.interactionFinished(request, response, { login, consent: {} })
}

/** What a browser and `kubectl oidc-login` do. */
async function logInAs(issuer: string, browser: TestBrowser, user: string): Promise<string> {
  const verifier = randomBytes(32).toString('base64url')
  const query = new URLSearchParams({
    client_id: OIDC_CLIENT,
    response_type: 'code',
    redirect_uri: REDIRECT,
    scope: SCOPES,
    login_hint: user,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  const { url, text } = await browser.open(`${issuer}/auth?${query}`, undefined, REDIRECT)
  const code = new URL(url).searchParams.get('code')
  if (code === null) throw new Error(`no code: ${url} ${text}`)
  const form = { grant_type: 'authorization_code', client_id: OIDC_CLIENT, redirect_uri: REDIRECT, code }
  const answer = await browser.open(`${issuer}/token`, { ...form, code_verifier: verifier })
  const { id_token: token } = JSON.parse(answer.text) as { id_token?: string }
  if (token === undefined) throw new Error(answer.text)
  return token
}
