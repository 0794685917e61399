// Which clusters accept the credentials of a request, as far as the gateway verifies them itself: in the order of authenticate.ts for each cluster, but
// each CA bundle and each issuer once for all clusters that have it. The steps are short: thousands of clusters take many.

import { isRefusal } from '../../kit/core/refusal/refusal.ts'
import { isRefusedClaims, userFromClaims } from '../../pki/core/id-tokens/claims-user.ts'
import { userFromCertificate, withAuthenticatedGroup } from '../../pki/core/user-from-cert.ts'
import type { Jwt } from '../../pki/io/jwt.ts'
import { chainEndsMs, identityIn, type ParsedChain } from '../../pki/io/x509-chain.ts'
import { refuseRevoked } from '../core/admission/steps.ts'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import { hasAny } from '../core/cluster/revocation.ts'
import { checkAccess } from '../core/policy/access-list.ts'
import { certificateHashes } from '../io/reviews/credential-hashes.ts'
import { endableSession, issuerOf, type SignatureFault } from '../io/reviews/issuer-tokens.ts'
import { refuseEndedSession } from './ended-session.ts'
import type { Exchange } from './exchange/exchange.ts'
import { type Authenticated, authenticated } from './exchange/identity.ts'

export interface SignedToken {
  readonly jwt: Jwt
  /** In the form of revocations. */
  readonly hashes: readonly string[]
  /** Sources of keys that have the key by which it is signed. */
  readonly keys: ReadonlySet<string>
}

export interface AcceptingCluster {
  readonly cluster: CompiledCluster
  readonly requester: Authenticated
}

/** Yields undefined for a step without a result, and each cluster at most once. */
export function* acceptingClusters(
  exchange: Exchange,
  chain: ParsedChain | undefined,
  token: SignedToken | undefined,
): Generator<AcceptingCluster | undefined> {
  // Its authenticators go no further.
  const decided = new Set<string>()
  if (chain !== undefined) yield* byCertificate(exchange, chain, decided)
  if (token !== undefined) yield* byToken(exchange, token, decided)
}

function* byCertificate(
  exchange: Exchange,
  chain: ParsedChain,
  decided: Set<string>,
): Generator<AcceptingCluster | undefined> {
  const hashes = certificateHashes(chain[0].raw)
  const { subject, sha256 } = identityIn(chain[0])
  const user = userFromCertificate(subject, sha256)
  if (user !== undefined && 'error' in user) return
  const requester = user && authenticated(user, 'x509', hashes)
  for (const [clientCA, clusters] of exchange.gw.clusters.trust.byClientCA) {
    const isValid = chainEndsMs(chain, clientCA, exchange.nowMs) > 0
    yield undefined
    if (!isValid) continue
    for (const [name, cluster] of clusters) {
      // Without a user name the token decides, unless the certificate is revoked.
      if (requester === undefined && !hasAny(cluster.authentication.revoked?.certificates ?? NONE, hashes)) continue
      decided.add(name)
      const isServed = requester !== undefined && !isRefusal(requester) && serves(exchange, cluster, requester)
      yield isServed ? { cluster, requester } : undefined
    }
  }
}

const NONE: ReadonlySet<string> = new Set()

function* byToken(
  exchange: Exchange,
  { jwt, hashes, keys }: SignedToken,
  decided: Set<string>,
): Generator<AcceptingCluster | undefined> {
  const seen = new Set<object>()
  for (const byKeys of issuersOf(exchange, jwt)) {
    for (const [source, issuers] of byKeys) {
      if (!keys.has(source)) continue
      for (const trusted of issuers) {
        if (seen.has(trusted)) continue
        seen.add(trusted)
        const user = userFromClaims(jwt.claims, trusted.issuer.rules)
        yield undefined
        if (isRefusedClaims(user)) continue
        const session = endableSession(jwt, trusted.issuer)
        if (session !== undefined && 'refused' in session) continue
        const requester = authenticated(withAuthenticatedGroup(user), 'token', hashes)
        if ('refused' in requester) continue
        const expiresMs = Number(jwt.claims['exp']) * 1000
        requester.origin = { by: trusted.issuer.rules.issuer, expiresMs, ...(session && { session }) }
        for (const [name, cluster] of trusted.clusters) {
          if (decided.has(name)) continue
          decided.add(name)
          yield serves(exchange, cluster, requester) ? { cluster, requester } : undefined
        }
      }
    }
  }
}

/** Revoked users, and users that its access list refuses, learn nothing of the cluster. */
function serves(exchange: Exchange, cluster: CompiledCluster, requester: Authenticated): boolean {
  const { gw, record, peer } = exchange
  if (refuseRevoked(cluster.authentication.revoked, requester) !== undefined) return false
  if (refuseEndedSession(gw, requester) !== undefined) return false
  const { access } = cluster
  if (access === undefined || access.shadow) return true
  return checkAccess(access, requester.user, record.userAgent, peer.remoteAddress) === undefined
}

/** The issuers of the token that accept its audience. */
export function issuersOf({ gw }: Exchange, jwt: Jwt): ReturnType<typeof gw.clusters.trust.issuersOf> {
  const issuer = issuerOf(jwt)
  if (typeof issuer !== 'string') return []
  const { aud } = jwt.claims as { aud?: unknown }
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return gw.clusters.trust.issuersOf(
    issuer,
    audiences.filter((one) => typeof one === 'string'),
  )
}

type CheckedKeys = [source: string, SignatureFault | undefined | Promise<SignatureFault | undefined>]

/** Checks the signature, once for each source of keys. Waits for all unknown keys together, after the last step. */
export function* checkSignatures(exchange: Exchange, jwt: Jwt, checked: CheckedKeys[]): Generator<undefined> {
  const seen = new Set<string>()
  for (const byKeys of issuersOf(exchange, jwt)) {
    for (const [source, [trusted]] of byKeys) {
      if (trusted === undefined || seen.has(source)) continue
      seen.add(source)
      checked.push([source, exchange.gw.issuers.faultOf(trusted.issuer, jwt)])
      yield undefined
    }
  }
}
