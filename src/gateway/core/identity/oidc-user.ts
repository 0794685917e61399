// Maps the claims of an OpenID Connect ID token to a user, like kube-apiserver's OIDC authenticator
// (apiserver/plugin/pkg/authenticator/token/oidc/oidc.go), but stricter: names reserved by Kubernetes or Portcullis are refused.

import type { UserInfo } from '../../../kube/api/user.ts'
import { CREDENTIAL_ID_KEY } from '../../../pki/core/user-from-cert.ts'

/** Which tokens are accepted, and how their claims name the user. */
export interface OidcClaimOptions {
  /** `https://...`, exactly as in the `iss` claim. */
  readonly issuer: string
  /** Must be among the audiences. */
  readonly clientId: string
  readonly usernameClaim: string
  /** As configured: '' = the issuer and `#`, unless the claim is `email`; `-` = none. */
  readonly usernamePrefix: string
  /** '' = tokens carry no groups. */
  readonly groupsClaim: string
  readonly groupsPrefix: string
  /** Claims that must be present with this value. */
  readonly requiredClaims: Readonly<Record<string, string>>
}

/** Why a token is refused: the label of a metric, so a closed set. */
export type OidcRefusal =
  | 'malformed'
  | 'algorithm'
  | 'unknown-key'
  | 'audience'
  | 'expired'
  | 'not-yet-valid'
  | 'claims'
  | 'reserved-name'

/** A rejected token; the message never repeats the token. */
export interface RefusedClaims {
  readonly refused: OidcRefusal
  readonly message: string
}

export type Claims = Readonly<Record<string, unknown>>

/** Tolerated clock skew between issuer and gateway for `nbf` and `iat` (github.com/coreos/go-oidc, verify.go). */
const SKEW_SECONDS = 5 * 60
const EMAIL = 'email'
/** Prefixes of names that have, or may get, a special meaning. */
const RESERVED = ['system:', 'portcullis:']
/** More would not fit into a kube-apiserver's header either. */
const MAX_GROUPS = 1_000

/** Checks that the token is for us and currently valid. undefined = it is. */
export function checkAudienceAndTimes(
  claims: Claims,
  { clientId }: OidcClaimOptions,
  nowSeconds: number,
): RefusedClaims | undefined {
  const { aud, exp, nbf, iat } = claims as { aud?: unknown; exp?: unknown; nbf?: unknown; iat?: unknown }
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  if (!audiences.includes(clientId)) return refuse('audience', `the audience is not ${JSON.stringify(clientId)}`)
  if (typeof exp !== 'number') return refuse('claims', 'the exp claim is missing or not a number')
  if (exp <= nowSeconds) return refuse('expired', 'the token has expired')
  for (const [name, value] of Object.entries({ nbf, iat })) {
    if (value === undefined) continue
    if (typeof value !== 'number') return refuse('claims', `the claim ${name} is not a number`)
    if (value > nowSeconds + SKEW_SECONDS) {
      return refuse('not-yet-valid', `the claim ${name} is more than five minutes in the future`)
    }
  }
  return undefined
}

/** The user of claims that are signed, for us and valid. Does not add system:authenticated. */
export function userFromClaims(claims: Claims, options: OidcClaimOptions): UserInfo | RefusedClaims {
  const name = usernameOf(claims, options)
  if (typeof name !== 'string') return name
  const groups = groupsOf(claims, options)
  if ('refused' in groups) return groups
  for (const [claim, wanted] of Object.entries(options.requiredClaims)) {
    if (own(claims, claim) === wanted) continue
    return refuse('claims', `the claim ${claim} is not ${JSON.stringify(wanted)}`)
  }
  const { jti } = claims as { jti?: unknown }
  const extra = typeof jti === 'string' && jti !== '' ? { [CREDENTIAL_ID_KEY]: [`JTI=${jti}`] } : {}
  return { name, uid: '', groups, extra }
}

export function isRefusedClaims(result: object): result is RefusedClaims {
  return 'refused' in result
}

function usernameOf(claims: Claims, options: OidcClaimOptions): string | RefusedClaims {
  const { usernameClaim: claim } = options
  const value = own(claims, claim)
  if (typeof value !== 'string' || value === '') {
    return refuse('claims', `the claim ${claim}, which names the user, is not a text`)
  }
  // OpenID Connect Core, section 5.1: if the issuer says so, the address is only the user's own claim.
  if (claim === EMAIL && Object.hasOwn(claims, 'email_verified') && claims['email_verified'] !== true) {
    return refuse('claims', 'the email address is not verified')
  }
  const name = `${usernamePrefix(options)}${value}`
  return isReserved(name) ? refuse('reserved-name', `the user name begins with ${RESERVED.join(' or ')}`) : name
}

function usernamePrefix({ usernamePrefix: prefix, usernameClaim, issuer }: OidcClaimOptions): string {
  if (prefix === '-') return ''
  if (prefix !== '') return prefix
  return usernameClaim === EMAIL ? '' : `${issuer}#`
}

/** A single group as a string, or a list. */
function groupsOf(claims: Claims, options: OidcClaimOptions): readonly string[] | RefusedClaims {
  const { groupsClaim: claim, groupsPrefix } = options
  const value = claim === '' ? undefined : own(claims, claim)
  if (value === undefined || value === null) return []
  const groups: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (groups.length > MAX_GROUPS) return refuse('claims', `the claim ${claim} has more than ${MAX_GROUPS} groups`)
  const names: string[] = []
  for (const group of groups) {
    if (typeof group !== 'string') return refuse('claims', `the claim ${claim} is neither a text nor a list of texts`)
    const name = `${groupsPrefix}${group}`
    if (isReserved(name))
      return refuse('reserved-name', `a group in the claim ${claim} begins with ${RESERVED.join(' or ')}`)
    names.push(name)
  }
  return names
}

function isReserved(name: string): boolean {
  return RESERVED.some((prefix) => name.startsWith(prefix))
}

function own(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined
}

function refuse(refused: OidcRefusal, message: string): RefusedClaims {
  return { refused, message }
}
