// Verifies ID tokens of one OpenID provider (OpenID Connect Core 1.0, section 3.1.3.7) and returns their user. Done synchronously with the known
// keys; only a token signed by none of them may wait for newer keys.

import type { Logger } from '../../../kit/api/ports.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import { isRefusedClaims, type RefusedClaims, type TokenFault } from '../../core/id-tokens/claims-user.ts'
import type { TokenVerifier } from '../control-tokens.ts'
import type { Jwt } from '../jwt.ts'
import type { IssuerKeys } from './issuer-keys.ts'
import type { SigningKey } from './signing-keys.ts'
import {
  checkUnverified,
  isSignedIdToken,
  MAX_WAITING,
  readIdToken,
  type TokenChecks,
  verifyIdToken,
} from './verify-id-token.ts'

export interface IdTokensOptions extends TokenChecks {
  readonly keys: Pick<IssuerKeys, 'keys' | 'refetch'>
  readonly log: Logger
  /** A token of this provider was checked. `accepted`, or why it was refused. */
  onToken(result: 'accepted' | TokenFault): void
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
  readonly #loggedMs = new Map<TokenFault, number>()

  constructor(options: IdTokensOptions) {
    this.#options = options
  }

  verify(token: string, nowMs: number): UserInfo | undefined {
    const known = this.#recall(token, nowMs)
    if (known !== undefined) return known
    const jwt = this.#read(token)
    if (jwt === undefined) return undefined
    const user = verifyIdToken(jwt, this.#options, this.#options.keys.keys, nowMs)
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
    if (jwt === undefined || checkUnverified(jwt, this.#options, nowMs) !== undefined) return undefined
    const { keys, algs } = this.#options
    if (isSignedIdToken(jwt, algs, keys.keys) || this.#waiting >= MAX_WAITING) return undefined
    const fetched = keys.refetch()
    if (fetched === undefined) return undefined
    this.#waiting++
    return fetched.finally(() => void this.#waiting--)
  }

  /** undefined = another issuer's token, or none. */
  #read(token: string): Jwt | undefined {
    const jwt = readIdToken(token)
    return jwt?.claims['iss'] === this.#options.rules.issuer ? jwt : undefined
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
    const { onToken, log, rules } = this.#options
    onToken(refused)
    const lastMs = this.#loggedMs.get(refused)
    if (lastMs !== undefined && nowMs - lastMs < LOG_EVERY_MS && nowMs >= lastMs) return
    this.#loggedMs.set(refused, nowMs)
    log.warn('an ID token was refused; further ones for this reason are only counted for a minute', {
      issuer: rules.issuer,
      refused,
      reason: message,
    })
  }
}
