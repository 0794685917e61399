// A real OpenID provider (oidc-provider) over https inside the test: people log in by the authorization code flow with PKCE, as with
// `kubectl oidc-login`. It can rotate its keys, and go away.

import { createHash, generateKeyPairSync, type JsonWebKey, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer, request, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { importJWK, type JWTHeaderParameters, SignJWT } from 'jose'
import { createCA } from '../../../src/pki/io/pki.ts'
import { serverCertificate } from '../pki.ts'

export const OIDC_CLIENT = 'kubernetes'

export interface OidcIssuer {
  readonly url: string
  /** PEM of the CA that signed its certificate. */
  readonly caFile: string
  /** How often it was asked for its keys. */
  readonly keyRequests: number
  /** The ID token of a login. */
  login(user: string): Promise<string>
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

export async function startOidcIssuer({ people = {}, alg = 'RS256' }: OidcIssuerOptions = {}): Promise<OidcIssuer> {
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
  const handler: RequestListener = (request, response) => {
    if (request.url === '/jwks') keyRequests++
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
          token_endpoint_auth_method: 'none',
          redirect_uris: [REDIRECT],
          id_token_signed_response_alg: alg,
        },
      ],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups', 'team'] },
      // In the ID token, as kube-apiserver wants them.
      conformIdTokenClaims: false,
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      ttl: { AccessToken: 600, Grant: 600, IdToken: 3600, Interaction: 600, Session: 600 },
      cookies: { keys: [randomBytes(16).toString('hex')] },
      findAccount: (_context: unknown, sub: string) => ({
        accountId: sub,
        claims: () => ({ sub, ...(people[sub] ?? {}) }),
      }),
      async loadExistingGrant({ oidc }: FlowContext) {
        const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId })
        grant.addOIDCScope(SCOPES)
        await grant.save()
        return grant
      },
    })
  }
  rotate()
  return {
    url,
    caFile,
    get keyRequests() {
      return keyRequests
    },
    login: (user) => logInAs(url, ca.certPem, user),
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

interface PageAnswer {
  readonly location: string
  readonly text: string
}

/** What a browser and `kubectl oidc-login` do. */
async function logInAs(issuer: string, ca: string, user: string): Promise<string> {
  const cookies = new Map<string, string>()
  const call = (url: string, body = ''): Promise<PageAnswer> => {
    const headers: Record<string, string> = {
      cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
    }
    if (body !== '') headers['content-type'] = 'application/x-www-form-urlencoded'
    return new Promise((resolve, reject) => {
      const sent = request(url, { ca, headers, agent: false, method: body === '' ? 'GET' : 'POST' }, (answer) => {
        for (const line of answer.headers['set-cookie'] ?? []) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
          cookies.set(name, value)
        }
        let text = ''
        answer.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        answer.once('end', () => resolve({ location: answer.headers.location ?? '', text }))
      })
      sent.once('error', reject)
      sent.end(body)
    })
  }
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
  let { location, text } = await call(`${issuer}/auth?${query}`)
  for (let hops = 0; hops < 5 && location !== '' && !location.startsWith(REDIRECT); hops++) {
    ;({ location, text } = await call(new URL(location, issuer).href))
  }
  const code = URL.canParse(location) ? new URL(location).searchParams.get('code') : null
  if (code === null) throw new Error(`no code: ${location} ${text}`)
  const form = { grant_type: 'authorization_code', client_id: OIDC_CLIENT, redirect_uri: REDIRECT, code }
  const answer = await call(`${issuer}/token`, String(new URLSearchParams({ ...form, code_verifier: verifier })))
  const { id_token: token } = JSON.parse(answer.text) as { id_token?: string }
  if (token === undefined) throw new Error(answer.text)
  return token
}
