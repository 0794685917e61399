// Tokens of the issuers that a cluster names (spec.authentication.jwt), verified in this thread with the keys that the main thread has read. A token
// that no issuer vouches for is left to the cluster, as kube-apiserver's union of token authenticators leaves it to the next one.

import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { Question } from '../../../kit/core/topics/questions.ts'
import { Topic } from '../../../kit/core/topics/topics.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import { isRefusedClaims, type RefusedClaims, type TokenFault } from '../../../pki/core/id-tokens/claims-user.ts'
import { SIGNING_ALGS } from '../../../pki/core/signing-algs.ts'
import { MIN_FETCH_INTERVAL_MS } from '../../../pki/io/id-tokens/issuer-keys.ts'
import { type PublicJwk, readKeySet, type SigningKey } from '../../../pki/io/id-tokens/signing-keys.ts'
import {
  checkUnverified,
  isSignedIdToken,
  MAX_WAITING,
  readIdToken,
  verifyIdToken,
} from '../../../pki/io/id-tokens/verify-id-token.ts'
import type { Jwt } from '../../../pki/io/jwt.ts'
import type { CredentialOrigin } from '../../api/identity-seen.ts'
import type { TokenSession } from '../../api/token-session.ts'
import type { CompiledIssuer } from '../../core/cluster/compiled-cluster.ts'
import { sessionOf } from '../../core/logout/token-session.ts'
import { sha256 } from './credential-hashes.ts'

/** The keys of one source (CompiledIssuer.keys). */
export interface KeysRead {
  readonly source: string
  /** undefined = no cluster names it any more. */
  readonly keys: readonly PublicJwk[] | undefined
}

/** From the main thread. */
export const KEYS_READ = new Topic<KeysRead>('issuer-keys')
/** To the main thread, which reads the keys of a source again, unless it has done so a moment ago. */
export const READ_KEYS = new Question<string, undefined>('read-issuer-keys')

/** The user that an issuer vouches for. */
export interface Vouched {
  readonly user: UserInfo
  /** How long the token is still valid, milliseconds. */
  readonly forMs: number
  readonly origin: CredentialOrigin
}

/** `no-keys`: those of the issuer could not be read yet. */
export type SignatureFault = TokenFault | 'no-keys'

export interface IssuerTokens {
  setKeys(read: KeysRead): void
  /**
   * undefined = no issuer of the cluster vouches for the token. Waits only if the token is valid except for its unknown key. Never rejects.
   * @param issuers those in force; asked again after waiting
   */
  vouch(
    cluster: string,
    issuers: () => readonly CompiledIssuer[],
    token: string,
  ): Vouched | undefined | Promise<Vouched | undefined>
  /**
   * Why the issuer's signature does not count; undefined = it has signed the token, which is for one of its audiences and valid now. The user in
   * the claims is not checked. Waits like `vouch`, and never rejects.
   */
  faultOf(issuer: CompiledIssuer, jwt: Jwt): SignatureFault | undefined | Promise<SignatureFault | undefined>
}

interface IssuerTokensDeps {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly log: Logger
  /** Resolves when the newest keys of the source have been read and set. May reject. */
  readKeys(source: string): Promise<unknown>
  onToken(cluster: string, result: 'accepted' | TokenFault): void
}

interface KnownKeys {
  keys: readonly SigningKey[]
  askedMs: number
  asking: Promise<void> | undefined
}

/** At most one log line per cluster and reason in this interval. */
const LOG_EVERY_MS = 60_000
/** Remembered times of log lines. */
const MAX_LOGGED = 1_000
/** Kubernetes accepts tokens of this issuer under both of its names. */
const GOOGLE = { short: 'accounts.google.com', long: 'https://accounts.google.com' }

export function createIssuerTokens(deps: IssuerTokensDeps): IssuerTokens {
  return new ThreadIssuerTokens(deps)
}

class ThreadIssuerTokens implements IssuerTokens {
  readonly #deps: IssuerTokensDeps
  readonly #known = new Map<string, KnownKeys>()
  #waiting = 0
  readonly #loggedMs = new Map<string, number>()

  constructor(deps: IssuerTokensDeps) {
    this.#deps = deps
  }

  setKeys({ source, keys }: KeysRead): void {
    if (keys === undefined) this.#known.delete(source)
    else this.#keysOf(source).keys = readKeySet({ keys }) ?? []
  }

  vouch(
    cluster: string,
    issuers: () => readonly CompiledIssuer[],
    token: string,
  ): Vouched | undefined | Promise<Vouched | undefined> {
    const jwt = readIdToken(token)
    if (jwt === undefined) return undefined
    const name = issuerOf(jwt)
    const find = (): CompiledIssuer | undefined => issuers().find(({ rules }) => rules.issuer === name)
    const issuer = find()
    if (issuer === undefined) return undefined
    const newer = this.#newerKeys(issuer, jwt)
    if (newer === undefined) return this.#verify(cluster, issuer, jwt)
    return newer.then(() => {
      const inForce = find()
      return inForce === undefined ? undefined : this.#verify(cluster, inForce, jwt)
    })
  }

  faultOf(issuer: CompiledIssuer, jwt: Jwt): SignatureFault | undefined | Promise<SignatureFault | undefined> {
    const newer = this.#newerKeys(issuer, jwt)
    return newer === undefined ? this.#faultOf(issuer, jwt) : newer.then(() => this.#faultOf(issuer, jwt))
  }

  #faultOf({ rules, keys: source }: CompiledIssuer, jwt: Jwt): SignatureFault | undefined {
    const checks = { rules, algs: SIGNING_ALGS }
    const refused = checkUnverified(jwt, checks, this.#deps.clock.now())
    if (refused !== undefined) return refused.refused
    const { keys } = this.#keysOf(source)
    if (isSignedIdToken(jwt, checks.algs, keys)) return undefined
    return keys.length === 0 ? 'no-keys' : 'unknown-key'
  }

  #verify(cluster: string, issuer: CompiledIssuer, jwt: Jwt): Vouched | undefined {
    const { clock, onToken } = this.#deps
    const { rules, keys } = issuer
    const user = verifyIdToken(jwt, { rules, algs: SIGNING_ALGS }, this.#keysOf(keys).keys, clock.now())
    if (isRefusedClaims(user)) {
      this.#refused(cluster, rules.issuer, user)
      return undefined
    }
    const session = endableSession(jwt, issuer)
    if (session !== undefined && 'refused' in session) {
      this.#refused(cluster, rules.issuer, session)
      return undefined
    }
    onToken(cluster, 'accepted')
    const expiresMs = Number(jwt.claims['exp']) * 1000
    const origin = { by: rules.issuer, expiresMs, ...(session !== undefined && { session }) }
    return { user, forMs: expiresMs - clock.now(), origin }
  }

  /** undefined = nothing to wait for: a known key has signed it, it is refused anyway, or its issuer was asked a moment ago. */
  #newerKeys({ rules, keys: source }: CompiledIssuer, jwt: Jwt): Promise<void> | undefined {
    const { clock } = this.#deps
    const checks = { rules, algs: SIGNING_ALGS }
    if (checkUnverified(jwt, checks, clock.now()) !== undefined) return undefined
    const known = this.#keysOf(source)
    if (isSignedIdToken(jwt, checks.algs, known.keys) || this.#waiting >= MAX_WAITING) return undefined
    if (known.asking === undefined) {
      const nowMs = clock.monotonic()
      if (nowMs - known.askedMs < MIN_FETCH_INTERVAL_MS) return undefined
      known.askedMs = nowMs
      known.asking = this.#ask(known, source)
    }
    this.#waiting++
    return known.asking.finally(() => void this.#waiting--)
  }

  async #ask(known: KnownKeys, source: string): Promise<void> {
    try {
      await this.#deps.readKeys(source)
    } catch {
      // The main thread is too busy, or ends: the known keys stay.
    } finally {
      known.asking = undefined
    }
  }

  #keysOf(source: string): KnownKeys {
    const known = this.#known.get(source)
    if (known !== undefined) return known
    const fresh: KnownKeys = { keys: [], askedMs: Number.NEGATIVE_INFINITY, asking: undefined }
    this.#known.set(source, fresh)
    return fresh
  }

  #refused(cluster: string, issuer: string, { refused, message }: RefusedClaims): void {
    const { clock, log, onToken } = this.#deps
    onToken(cluster, refused)
    const key = `${refused} ${cluster} ${issuer}`
    const nowMs = clock.monotonic()
    const lastMs = this.#loggedMs.get(key)
    if (lastMs !== undefined && nowMs - lastMs < LOG_EVERY_MS) return
    if (this.#loggedMs.size >= MAX_LOGGED) this.#loggedMs.clear()
    this.#loggedMs.set(key, nowMs)
    log.warn('a token of an issuer is not accepted; further ones for this reason are only counted for a minute', {
      cluster,
      issuer,
      refused,
      reason: message,
    })
  }
}

/** The session of a token that its issuer has signed; undefined = the issuer does not tell of logouts. */
export function endableSession({ claims }: Jwt, issuer: CompiledIssuer): TokenSession | RefusedClaims | undefined {
  return issuer.endsSessions ? sessionOf(claims, issuer.rules.audiences, sourceOf(issuer)) : undefined
}

/**
 * The session of a token that the cluster has accepted by its TokenReview: it vouches for the very bytes that are read here, and an issuer of its entries
 * that tells of logouts may end it. undefined = no logout does.
 */
export function sessionOfReviewed(token: string, issuers: readonly CompiledIssuer[]): TokenSession | undefined {
  if (!issuers.some(({ endsSessions }) => endsSessions)) return undefined
  const jwt = readIdToken(token)
  const issuer = jwt && issuers.find(({ rules }) => rules.issuer === issuerOf(jwt))
  const session = issuer && endableSession(jwt, issuer)
  return session === undefined || 'refused' in session ? undefined : session
}

const sources = new WeakMap<CompiledIssuer, string>()

/** As TokenSession.source. */
export function sourceOf(issuer: CompiledIssuer): string {
  const known = sources.get(issuer)
  if (known !== undefined) return known
  const source = sha256(issuer.keys)
  sources.set(issuer, source)
  return source
}

/** The issuer that the token names, as `spec.authentication.jwt` spells it. */
export function issuerOf({ claims }: Jwt): unknown {
  const { iss } = claims as { iss?: unknown }
  return iss === GOOGLE.short ? GOOGLE.long : iss
}
