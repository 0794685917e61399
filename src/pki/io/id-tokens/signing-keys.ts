// Signing keys of an OpenID provider (RFC 7517). A key only verifies algorithms of its type.

import { constants, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { SigningAlg } from '../../core/signing-algs.ts'
import type { Jwt } from '../jwt.ts'

export interface SigningKey {
  /** '' = none. */
  readonly id: string
  readonly key: KeyObject
  /** The only algorithm it may be used with; '' = any that its type allows. */
  readonly alg: string
  /** The same as plain data, for `readKeySet` of another thread. */
  readonly jwk: PublicJwk
}

/** The members of a JWK that verify signatures. */
export type PublicJwk = Readonly<Record<string, string>>

const PUBLIC_MEMBERS = ['kid', 'kty', 'use', 'alg', 'n', 'e', 'crv', 'x', 'y']

/** Keys considered per provider. */
const MAX_KEYS = 100
/** Characters of what is kept of a key: threads have copies of all. */
const MAX_JWK_LENGTH = 4_096
/** Keys tried for a token without a key id. */
const MAX_TRIED = 16
/** RFC 7518 section 3.3. */
const MIN_RSA_BITS = 2048
/** A signature costs the square of them: 8,192 bits take 0.2 ms. */
const MAX_RSA_BITS = 8192
/** As in Go (crypto/rsa); with a long one, a verification would cost as much as hundreds. */
const MAX_RSA_EXPONENT = 2_147_483_647
const CURVES: Readonly<Record<string, string>> = { ES256: 'prime256v1', ES384: 'secp384r1', ES512: 'secp521r1' }

/** The keys in a JWK Set that can verify signatures; others are skipped. undefined = it is not a JWK Set. */
export function readKeySet(document: unknown): readonly SigningKey[] | undefined {
  const keys = isRecord(document) ? document['keys'] : undefined
  if (!Array.isArray(keys)) return undefined
  const found: SigningKey[] = []
  for (const jwk of keys.slice(0, MAX_KEYS)) {
    const key = isRecord(jwk) ? readKey(jwk) : undefined
    if (key !== undefined) found.push(key)
  }
  return found
}

/** Whether one of the keys has signed the token with this algorithm. */
export function isSignedBy(keys: readonly SigningKey[], alg: SigningAlg, { header, signed, signature }: Jwt): boolean {
  const id = header['kid']
  let tried = 0
  for (const key of keys) {
    if (typeof id === 'string' && id !== '' && key.id !== id) continue
    if (!fits(key, alg)) continue
    if (++tried > MAX_TRIED) return false
    if (verifies(key.key, alg, signed, signature)) return true
  }
  return false
}

function readKey(jwk: Readonly<Record<string, unknown>>): SigningKey | undefined {
  const { kid, kty, use = 'sig', alg = '' } = jwk as { kid?: unknown; kty?: unknown; use?: unknown; alg?: unknown }
  if ((kty !== 'RSA' && kty !== 'EC') || use !== 'sig' || typeof alg !== 'string') return undefined
  try {
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    if (isCostly(key)) return undefined
    const members = PUBLIC_MEMBERS.flatMap((name) =>
      typeof jwk[name] === 'string' ? [[name, jwk[name]] as const] : [],
    )
    if (members.reduce((sum, [, value]) => sum + value.length, 0) > MAX_JWK_LENGTH) return undefined
    return { id: typeof kid === 'string' ? kid : '', key, alg, jwk: Object.fromEntries(members) }
  } catch {
    return undefined
  }
}

function isCostly({ asymmetricKeyDetails: { modulusLength = 0, publicExponent = 0n } = {} }: KeyObject): boolean {
  return modulusLength > MAX_RSA_BITS || publicExponent > MAX_RSA_EXPONENT
}

function fits({ key, alg: only }: SigningKey, alg: SigningAlg): boolean {
  if (only !== '' && only !== alg) return false
  const { modulusLength = 0, namedCurve } = key.asymmetricKeyDetails ?? {}
  const curve = CURVES[alg]
  if (curve !== undefined) return key.asymmetricKeyType === 'ec' && namedCurve === curve
  return key.asymmetricKeyType === 'rsa' && modulusLength >= MIN_RSA_BITS
}

function verifies(key: KeyObject, alg: SigningAlg, signed: Buffer, signature: Buffer): boolean {
  const hash = `sha${alg.slice(2)}`
  if (alg.startsWith('ES')) return verify(hash, signed, { key, dsaEncoding: 'ieee-p1363' }, signature)
  if (alg.startsWith('RS')) return verify(hash, signed, key, signature)
  const padding = constants.RSA_PKCS1_PSS_PADDING
  return verify(hash, signed, { key, padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }, signature)
}
