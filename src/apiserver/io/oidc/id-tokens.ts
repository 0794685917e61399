// Verifies ID tokens of one OpenID provider (OpenID Connect Core 1.0, section 3.1.3.7) and returns their user. Done synchronously with the known
// keys; only a token signed by none of them may wait for newer keys.

import {
  checkAudienceAndTimes,
  isRefusedClaims,
  type OidcClaimOptions,
  type OidcRefusal,
  type RefusedClaims,
  userFromClaims,
} from '../../../gateway/core/identity/oidc-user.ts'
import {
  CONTROL_OIDC_FETCHES,
  CONTROL_OIDC_KEYS_TIME,
  CONTROL_OIDC_TOKENS,
} from '../../../gateway/metrics/descriptors.ts'
import type { Exposition } from '../../../gateway/metrics/exposition.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { SigningAlg } from '../../../pki/core/signing-algs.ts'
import { MAX_TOKEN_LENGTH, type TokenVerifier } from '../../../pki/io/control-tokens.ts'
import { type Jwt, readJwt } from '../../../pki/io/jwt.ts'
import type { IssuerKeys } from './issuer-keys.ts'
import { isSignedBy, type SigningKey } from './signing-keys.ts'

export interface IdTokensOptions {
  readonly claims: OidcClaimOptions
  readonly algs: readonly SigningAlg[]
  readonly keys: Pick<IssuerKeys, 'keys' | 'refetch'>
  readonly log: Logger
  /** A token of this provider was checked. `accepted`, or why it was refused. */
  onToken(result: 'accepted' | OidcRefusal): void
}

/** A TokenVerifier: also returns undefined for tokens from other issuers. */
export interface IdTokens extends TokenVerifier {
  /** Await it before `verify`: newer keys are being fetched and may verify this token. undefined = nothing to wait for. Never rejects. */
  waitFor(token: string, nowMs: number): Promise<void> | undefined
}

interface Remembered {
  readonly user: UserInfo
  readonly untilMs: number
}

/** Tokens whose user is cached until they expire, so that each is verified once. */
const MAX_REMEMBERED = 4_096
/** Requests waiting for newer keys. */
const MAX_WAITING = 1_000
/** At most one log line per reason in this interval. */
const LOG_EVERY_MS = 60_000

export function createIdTokens(options: IdTokensOptions): IdTokens {
  return new ProviderTokens(options)
}

class ProviderTokens implements IdTokens {
  readonly #options: IdTokensOptions
  readonly #remembered = new Map<string, Remembered>()
  /** The keys with which the cached ones were verified. */
  #keys: readonly SigningKey[] = []
  #waiting = 0
  readonly #loggedMs = new Map<OidcRefusal, number>()

  constructor(options: IdTokensOptions) {
    this.#options = options
  }

  verify(token: string, nowMs: number): UserInfo | undefined {
    const known = this.#recall(token, nowMs)
    if (known !== undefined) return known
    const jwt = this.#read(token)
    if (jwt === undefined) return undefined
    const user = this.#userOf(jwt, nowMs)
    if (isRefusedClaims(user)) {
      this.#refuse(user, nowMs)
      return undefined
    }
    this.#options.onToken('accepted')
    this.#remember(token, { user, untilMs: Number(jwt.claims['exp']) * 1000 })
    return user
  }

  waitFor(token: string, nowMs: number): Promise<void> | undefined {
    if (this.#recall(token, nowMs) !== undefined) return undefined
    const jwt = this.#read(token)
    if (jwt === undefined || isRefusedClaims(this.#fromProvider(jwt, nowMs))) return undefined
    const { keys } = this.#options
    if (this.#isSigned(jwt) || this.#waiting >= MAX_WAITING) return undefined
    const fetched = keys.refetch()
    if (fetched === undefined) return undefined
    this.#waiting++
    return fetched.finally(() => void this.#waiting--)
  }

  /** undefined = another issuer's token, or none. */
  #read(token: string): Jwt | undefined {
    if (token.length > MAX_TOKEN_LENGTH) return undefined
    const jwt = readJwt(token)
    return jwt?.claims['iss'] === this.#options.claims.issuer ? jwt : undefined
  }

  #userOf(jwt: Jwt, nowMs: number): UserInfo | RefusedClaims {
    const claims = this.#fromProvider(jwt, nowMs)
    if (isRefusedClaims(claims)) return claims
    if (!this.#isSigned(jwt)) {
      return { refused: 'unknown-key', message: 'the token is not signed by a known key of the provider' }
    }
    return userFromClaims(jwt.claims, this.#options.claims)
  }

  /** Checks that precede the signature; costs nothing, and triggers no fetch. */
  #fromProvider({ header, claims }: Jwt, nowMs: number): RefusedClaims | object {
    // `crit` would name extensions that must be understood (RFC 7515 section 4.1.11).
    if (Object.hasOwn(header, 'crit')) return { refused: 'malformed', message: 'the header has critical extensions' }
    if (this.#algOf(header) === undefined) {
      const { algs } = this.#options
      return { refused: 'algorithm', message: `the token is signed with none of ${algs.join(', ')}` }
    }
    return checkAudienceAndTimes(claims, this.#options.claims, nowMs / 1000) ?? {}
  }

  #algOf(header: Jwt['header']): SigningAlg | undefined {
    return this.#options.algs.find((alg) => alg === header['alg'])
  }

  #isSigned(jwt: Jwt): boolean {
    const alg = this.#algOf(jwt.header)
    return alg !== undefined && isSignedBy(this.#options.keys.keys, alg, jwt)
  }

  #recall(token: string, nowMs: number): UserInfo | undefined {
    const { keys } = this.#options.keys
    // A key may have been withdrawn.
    if (keys !== this.#keys) this.#remembered.clear()
    this.#keys = keys
    const known = this.#remembered.get(token)
    return known !== undefined && known.untilMs > nowMs ? known.user : undefined
  }

  #remember(token: string, entry: Remembered): void {
    if (this.#remembered.size >= MAX_REMEMBERED) {
      for (const oldest of this.#remembered.keys()) {
        this.#remembered.delete(oldest)
        break
      }
    }
    this.#remembered.set(token, entry)
  }

  #refuse({ refused, message }: RefusedClaims, nowMs: number): void {
    const { onToken, log, claims } = this.#options
    onToken(refused)
    const lastMs = this.#loggedMs.get(refused)
    if (lastMs !== undefined && nowMs - lastMs < LOG_EVERY_MS && nowMs >= lastMs) return
    this.#loggedMs.set(refused, nowMs)
    log.warn('an ID token was refused; further ones for this reason are only counted for a minute', {
      issuer: claims.issuer,
      refused,
      reason: message,
    })
  }
}

export interface OidcCounts {
  /** Tokens by result: `accepted`, or the reason for refusal. */
  readonly tokens: ReadonlyMap<string, number>
  readonly fetched: number
  readonly notFetched: number
  /** When its keys were last read, milliseconds since the epoch; 0 = never. */
  readonly fetchedAtMs: number
}

/** Metrics of the OpenID provider. */
export function exposeOidc(into: Exposition, { tokens, fetched, notFetched, fetchedAtMs }: OidcCounts): void {
  for (const [result, count] of tokens) into.addMetric(CONTROL_OIDC_TOKENS, count, result)
  into.addMetric(CONTROL_OIDC_FETCHES, fetched, 'success')
  into.addMetric(CONTROL_OIDC_FETCHES, notFetched, 'error')
  into.addMetric(CONTROL_OIDC_KEYS_TIME, fetchedAtMs / 1000)
}
