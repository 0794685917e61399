// Issuers of tokens over https, one for each name, whose keys and answers a test decides. Tokens are what the test says, good or not.

import { createHmac, generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createCA } from '../../../src/pki/io/pki.ts'
import { serverCertificate } from '../pki.ts'

/** What signs a token: the issuer's key, an unpublished one, the public key as a secret (HS256), or nothing. */
export type SignedBy = 'own' | 'foreign' | 'secret' | 'none'

export interface TokenOptions {
  /** Over `alg` and `kid`; null removes one. */
  readonly header?: Readonly<Record<string, unknown>>
  readonly by?: SignedBy
}

export interface TokenIssuers {
  /** PEM. */
  readonly ca: string
  url(name: string): string
  /** Requests so far, by path. */
  readonly asked: Map<string, number>
  /** Claims over those of a good token; null removes one. */
  token(name: string, claims?: Readonly<Record<string, unknown>>, options?: TokenOptions): string
  /** Signs with a new key from now on. `published`: whether the issuer tells its key. */
  rotate(published?: boolean): void
  /** Answers a path in another way; undefined = as usual. */
  answer(path: string, handler: RequestListener | undefined): void
  /** The set of public keys. */
  readonly keySet: { readonly keys: readonly JsonWebKey[] }
  away(): Promise<void>
  back(): Promise<void>
  stop(): Promise<void>
}

export const TEST_AUDIENCE = 'kubernetes'
/** A claim that is null. */
export const JSON_NULL = { toJSON: () => null }
const HOUR = 3600

interface SigningPair {
  readonly kid: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export async function startTokenIssuers(): Promise<TokenIssuers> {
  const ca = createCA({ commonName: 'test issuers CA' })
  const { certPem: cert, keyPem: key } = serverCertificate(ca, ['localhost'], ['127.0.0.1'])
  const handlers = new Map<string, RequestListener>()
  const asked = new Map<string, number>()
  let made = 0
  const newPair = (): SigningPair => ({
    kid: `key-${++made}`,
    ...generateKeyPairSync('rsa', { modulusLength: 2048 }),
  })
  let pair = newPair()
  let published = pair
  const foreign = newPair()
  const keySet = () => ({
    keys: [{ ...published.publicKey.export({ format: 'jwk' }), kid: published.kid, use: 'sig', alg: 'RS256' }],
  })
  let port = 0
  const url = (name: string): string => `https://localhost:${port}/${name}`
  const server = createServer({ cert, key }, (request, response) => {
    const path = request.url ?? ''
    asked.set(path, (asked.get(path) ?? 0) + 1)
    const handler = handlers.get(path)
    if (handler !== undefined) {
      handler(request, response)
      return
    }
    const [, name = '', ...rest] = path.split('/')
    const at = rest.join('/')
    response.setHeader('content-type', 'application/json')
    if (at === '.well-known/openid-configuration' || at === 'elsewhere') {
      response.end(
        JSON.stringify({
          issuer: url(name),
          jwks_uri: `${url(name)}/keys`,
          id_token_signing_alg_values_supported: ['RS256'],
        }),
      )
    } else if (at === 'keys') response.end(JSON.stringify(keySet()))
    else {
      response.statusCode = 404
      response.end()
    }
  })
  const listen = (): Promise<void> => new Promise((resolve) => void server.listen(port, '127.0.0.1', resolve))
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise<void>((resolve) => void server.close(() => resolve()))
  }
  await listen()
  port = (server.address() as AddressInfo).port
  return {
    ca: ca.certPem,
    url,
    asked,
    token(name, claims = {}, { header = {}, by = 'own' } = {}) {
      const now = Math.floor(Date.now() / 1000)
      const payload = { iss: url(name), aud: TEST_AUDIENCE, sub: 'alice', iat: now, exp: now + HOUR, ...claims }
      const signer = by === 'foreign' ? foreign : pair
      const alg = by === 'secret' ? 'HS256' : by === 'none' ? 'none' : 'RS256'
      const text = [{ alg, kid: pair.kid, ...header }, payload].map(encoded).join('.')
      return `${text}.${signature(text, signer, by)}`
    },
    rotate(tells = true) {
      pair = newPair()
      if (tells) published = pair
    },
    answer(path, handler) {
      if (handler === undefined) handlers.delete(path)
      else handlers.set(path, handler)
    },
    get keySet() {
      return keySet()
    },
    away: close,
    back: listen,
    stop: close,
  }
}

function encoded(value: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(value).filter(([, member]) => member !== null)
  return Buffer.from(JSON.stringify(Object.fromEntries(given))).toString('base64url')
}

function signature(text: string, { privateKey, publicKey }: SigningPair, by: SignedBy): string {
  if (by === 'none') return ''
  if (by === 'secret') {
    const pem = publicKey.export({ type: 'spki', format: 'pem' })
    return createHmac('sha256', pem).update(text).digest('base64url')
  }
  return sign('sha256', Buffer.from(text), privateKey).toString('base64url')
}
