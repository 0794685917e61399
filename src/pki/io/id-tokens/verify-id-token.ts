// One ID token (OpenID Connect Core 1.0, section 3.1.3.7): what is checked before its signature, the signature, and the user that its claims name.

import type { UserInfo } from '../../../kube/api/user.ts'
import { checkAudienceAndTimes, type RefusedClaims, userFromClaims } from '../../core/id-tokens/claims-user.ts'
import type { IssuerRules } from '../../core/id-tokens/issuer-rules.ts'
import type { SigningAlg } from '../../core/signing-algs.ts'
import { MAX_TOKEN_LENGTH } from '../control-tokens.ts'
import { type Jwt, readJwt } from '../jwt.ts'
import { isSignedBy, type SigningKey } from './signing-keys.ts'

/** Requests that wait for newer keys, of a thread. */
export const MAX_WAITING = 1_000

/** Whether a token of the issuer counts. */
export interface TokenChecks {
  readonly rules: IssuerRules
  /** Algorithms that tokens may be signed with. */
  readonly algs: readonly SigningAlg[]
}

/** Verifies nothing. undefined = not an ID token, or too long for one. */
export function readIdToken(token: string): Jwt | undefined {
  return token.length > MAX_TOKEN_LENGTH ? undefined : readJwt(token)
}

/** Checks that precede the signature: cheap, and none of them needs a key. undefined = passed. */
export function checkUnverified(
  { header, claims }: Jwt,
  { rules, algs }: TokenChecks,
  nowMs: number,
): RefusedClaims | undefined {
  // `crit` would name extensions that must be understood (RFC 7515 section 4.1.11).
  if (Object.hasOwn(header, 'crit')) return { refused: 'malformed', message: 'the header has critical extensions' }
  if (algOf(header, algs) === undefined) {
    return { refused: 'algorithm', message: `the token is signed with none of ${algs.join(', ')}` }
  }
  return checkAudienceAndTimes(claims, rules, nowMs / 1000)
}

export function isSignedIdToken(jwt: Jwt, algs: readonly SigningAlg[], keys: readonly SigningKey[]): boolean {
  const alg = algOf(jwt.header, algs)
  return alg !== undefined && isSignedBy(keys, alg, jwt)
}

/** The user, without system:authenticated among the groups. */
export function verifyIdToken(
  jwt: Jwt,
  checks: TokenChecks,
  keys: readonly SigningKey[],
  nowMs: number,
): UserInfo | RefusedClaims {
  const refused = checkUnverified(jwt, checks, nowMs)
  if (refused !== undefined) return refused
  if (!isSignedIdToken(jwt, checks.algs, keys)) {
    return { refused: 'unknown-key', message: 'the token is not signed by a known key of the provider' }
  }
  return userFromClaims(jwt.claims, checks.rules)
}

function algOf(header: Jwt['header'], algs: readonly SigningAlg[]): SigningAlg | undefined {
  return algs.find((alg) => alg === header['alg'])
}
