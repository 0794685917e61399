// Bearer tokens of the control plane: JSON Web Tokens signed by itself (RFC 7519), only with ECDSA on P-256 and SHA-256 (ES256, RFC 7518 section
// 3.4). The algorithm in a token's header is only compared, never followed.

import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
  sign,
  verify,
} from 'node:crypto'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { ANONYMOUS_USER, type UserInfo } from '../../kube/api/user.ts'
import { CREDENTIAL_ID_KEY } from '../core/user-from-cert.ts'
import { encodePart, type Jwt, readJwt } from './jwt.ts'

export interface TokenVerifier {
  /** The token's user; undefined = not one of our tokens, or no longer valid. system:authenticated is not added. */
  verify(token: string, nowMs: number): UserInfo | undefined
}

interface ControlTokenOptions {
  readonly user: string
  readonly groups: readonly string[]
  readonly ttlSeconds: number
  readonly nowMs: number
}

const ISSUER = 'portcullis-control'
const ALGORITHM = 'ES256'
const HASH = 'sha256'
/** RFC 7518 section 3.4: R followed by S. */
const SIGNATURE_ENCODING = 'ieee-p1363'
const HEADER = encodePart({ alg: ALGORITHM, typ: 'JWT' })
/** Characters; longer ones are not even parsed. */
export const MAX_TOKEN_LENGTH: number = 16 * 1024
/** Tolerated clock difference between issuing and verifying replicas. */
const CLOCK_SKEW_SECONDS = 60

/** A new key, PKCS #8 PEM. */
export function generateTokenKey(): string {
  return generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  }).privateKey
}

/** @throws {UserError} if the key is invalid */
export function checkTokenKey(keyPem: string): void {
  readTokenKey(keyPem)
}

/**
 * @param keyPem from generateTokenKey()
 * @throws {UserError} if the key or the user's name is invalid
 */
export function issueControlToken(keyPem: string, options: ControlTokenOptions): string {
  const { user, groups, ttlSeconds } = options
  if (user === '' || user === ANONYMOUS_USER) throw new UserError('the token would name no user', 'name a user')
  if (!(ttlSeconds >= 1))
    throw new UserError('the validity of the token is not a number of seconds', 'give a longer one')
  const iat = Math.floor(options.nowMs / 1000)
  const exp = iat + Math.floor(ttlSeconds)
  const signed = `${HEADER}.${encodePart({ iss: ISSUER, sub: user, groups, iat, exp, jti: randomUUID() })}`
  const key = readTokenKey(keyPem)
  const signature = sign(HASH, Buffer.from(signed), { key, dsaEncoding: SIGNATURE_ENCODING })
  return `${signed}.${signature.toString('base64url')}`
}

/** @throws {UserError} if the key is invalid */
export function createTokenVerifier(keyPem: string): TokenVerifier {
  const key = createPublicKey(readTokenKey(keyPem))
  return { verify: (token, nowMs) => verifyToken(token, key, nowMs) }
}

function verifyToken(token: string, key: KeyObject, nowMs: number): UserInfo | undefined {
  if (token.length > MAX_TOKEN_LENGTH) return undefined
  const jwt = readJwt(token)
  if (jwt === undefined || !isOurHeader(jwt.header)) return undefined
  if (!verify(HASH, jwt.signed, { key, dsaEncoding: SIGNATURE_ENCODING }, jwt.signature)) return undefined
  return userOf(jwt.claims, nowMs / 1000)
}

function isOurHeader(header: Jwt['header']): boolean {
  // `crit` would name extensions that must be understood (RFC 7515 section 4.1.11); we support none.
  return header['alg'] === ALGORITHM && (header['typ'] ?? 'JWT') === 'JWT' && !Object.hasOwn(header, 'crit')
}

/** Claims of a token with a valid signature. */
function userOf(claims: Jwt['claims'], now: number): UserInfo | undefined {
  if (claims['iss'] !== ISSUER) return undefined
  const { sub, groups, iat, exp, jti } = claims as { sub?: unknown; groups?: unknown; iat?: unknown } & {
    exp?: unknown
    jti?: unknown
  }
  if (typeof sub !== 'string' || sub === '' || sub === ANONYMOUS_USER) return undefined
  if (!Array.isArray(groups) || !groups.every((group) => typeof group === 'string')) return undefined
  if (typeof exp !== 'number' || exp <= now) return undefined
  if (typeof iat !== 'number' || iat > now + CLOCK_SKEW_SECONDS) return undefined
  const extra = typeof jti === 'string' ? { [CREDENTIAL_ID_KEY]: [`JTI=${jti}`] } : {}
  return { name: sub, uid: '', groups, extra }
}

function readTokenKey(pem: string): KeyObject {
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return key
  } catch {
    // Reported below: OpenSSL's message about a file that is not a key does not help.
  }
  throw new UserError('the token key is not an EC key on P-256', 'remove the file, and a new one is created')
}
