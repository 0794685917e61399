// Who sends a request: x509, then bearer token, then anonymous (apiserver/pkg/authentication/request/union).
// A credential that is there but wrong is 401, never anonymous. What was found out is remembered for the connection.

import type { Peer } from '../../kit/api/stream.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { ANONYMOUS } from '../../kube/api/user.ts'
import { userFromCertificate, withAuthenticatedGroup } from '../../pki/core/user-from-cert.ts'
import { verifyClientCertificate } from '../../pki/io/x509-chain.ts'
import { refuseRevokedPart, refuseUnauthorized } from '../core/admission/steps.ts'
import type { CompiledCluster, CompiledRevocation } from '../core/cluster/compiled-cluster.ts'
import { CERTIFICATE_REVOKED, hasAny, TOKEN_REVOKED } from '../core/cluster/revocation.ts'
import { retryAfterBlock } from '../core/limits/spread-retry-after.ts'
import { blockedAddressMessage } from '../core/policy/traffic-messages.ts'
import { type BearerToken, readBearerToken } from '../core/request/websocket-token.ts'
import { certificateHashes, tokenHashes } from '../io/reviews/credential-hashes.ts'
import type { TokenQuery, TokenReviewResult } from '../io/reviews/token-review.ts'
import { KnownSecret } from '../io/secrets/known-secret.ts'
import type { LiveCluster } from '../state/clusters.ts'
import { refuseUnanswered, reviewCall } from './calls/kube-review.ts'
import type { Exchange } from './exchange/exchange.ts'
import { type Authenticated, authenticated } from './exchange/identity.ts'

/** What the certificate of a connection is worth to one cluster. */
interface RememberedCertificate {
  /** The client CAs it was checked against: another bundle means another check. */
  readonly clientCA: string
  readonly notAfterMs: number
  readonly outcome: Authenticated | Refusal | undefined
  /** What it is recognised by when it is revoked; none when it is not valid anyway. */
  readonly hashes: readonly string[]
}

/** The last token of a connection that was good. */
interface RememberedToken {
  /** The `authorization` field that brought it. */
  readonly authorization: KnownSecret
  readonly cluster: string
  /** As of the answer: another one means another question. */
  readonly epoch: number
  /** Monotonic milliseconds, from the answer: not remembered longer here than there. */
  readonly untilMs: number
  readonly identity: Authenticated
}

/** Key in the memory of a connection; the other keys are names of clusters, which have no colon. */
const TOKEN_MEMO = ':token'
const FAILED_MEMO = ':failed-certificate'
/** Characters, several times what any issuer makes: a question that may have to wait must not hold a megabyte. */
const MAX_TOKEN_LENGTH = 64 * 1024
const NEVER = Number.POSITIVE_INFINITY

/**
 * A promise only where a token has to be asked for. Whether the user is revoked is asked afterwards (refuseRevoked).
 */
export function authenticate(
  exchange: Exchange,
  live: LiveCluster,
  cluster: CompiledCluster,
): Authenticated | Refusal | Promise<Authenticated | Refusal> {
  const { peer, head } = exchange
  const byCertificate = peer.certificate === undefined ? undefined : fromCertificate(peer, cluster, exchange.nowMs)
  if (byCertificate !== undefined && (!isRefusal(byCertificate) || byCertificate.refused === 'revoked')) {
    return byCertificate
  }
  // Without either field there is no token, whatever else there is.
  if (head.authorization !== undefined || head.upgrade !== '') {
    const remembered = fromMemory(exchange, live, cluster)
    if (remembered !== undefined) return remembered
    const bearer = readBearerToken(exchange.list)
    if (bearer.kind === 'invalid') return refuseFailed(exchange)
    if (bearer.kind === 'token') return fromToken(exchange, live, cluster, bearer)
  }
  const blocked = refuseBlocked(exchange)
  if (blocked !== undefined) return blocked
  if (byCertificate !== undefined) return refuseCertificate(exchange, byCertificate)
  if (!cluster.authentication.anonymous) return refuseUnauthorized()
  return anonymousIn(cluster)
}

/** A credential that is wrong whatever is asked, and how it is answered. */
function refuseFailed(exchange: Exchange): Refusal {
  fail(exchange)
  return refuseBlocked(exchange) ?? refuseUnauthorized()
}

function fail({ gw, peer }: Exchange): void {
  gw.failures?.failed(peer.addressCharge.source)
}

/** Counted once for a connection: each of its requests has the same certificate. */
function refuseCertificate(exchange: Exchange, refusal: Authenticated | Refusal): Authenticated | Refusal {
  const { memo } = exchange.peer
  if (!memo.has(FAILED_MEMO)) {
    memo.set(FAILED_MEMO, true)
    fail(exchange)
  }
  return refusal
}

/** undefined = a certificate without a user name has no opinion. */
function fromCertificate(peer: Peer, cluster: CompiledCluster, nowMs: number): Authenticated | Refusal | undefined {
  let known = peer.memo.get(cluster.name) as RememberedCertificate | undefined
  if (known === undefined || known.clientCA !== cluster.serving.clientCA || known.notAfterMs <= nowMs) {
    known = checkCertificate(peer, cluster, nowMs)
    peer.memo.set(cluster.name, known)
  }
  const { revoked } = cluster.authentication
  // One that names nobody is refused, too: a revoked certificate is not the same as none.
  if (revoked !== undefined && hasAny(revoked.certificates, known.hashes)) return refuseRevokedPart(CERTIFICATE_REVOKED)
  return known.outcome
}

function checkCertificate(peer: Peer, cluster: CompiledCluster, nowMs: number): RememberedCertificate {
  const clientCA = cluster.serving.clientCA
  const refused = (notAfterMs: number): RememberedCertificate => ({
    clientCA,
    notAfterMs,
    outcome: refuseUnauthorized(),
    hashes: [],
  })
  const leaf = peer.certificate?.chain[0]
  if (peer.certificate === undefined || leaf === undefined) return refused(NEVER)
  const verified = verifyClientCertificate(peer.certificate, clientCA, nowMs)
  if ('error' in verified) return refused(NEVER)
  const { notAfterMs } = verified
  const user = userFromCertificate(verified.subject, verified.sha256)
  const hashes = certificateHashes(leaf)
  if (user === undefined) return { clientCA, notAfterMs, outcome: undefined, hashes }
  if ('error' in user) return refused(notAfterMs)
  return { clientCA, notAfterMs, outcome: authenticated(user, 'x509', hashes), hashes }
}

/** The same field again, on the same connection and for the same cluster. Nothing else makes two tokens the same. */
function fromMemory(exchange: Exchange, live: LiveCluster, cluster: CompiledCluster): Authenticated | undefined {
  const { gw, peer, head, monotonicMs } = exchange
  const known = peer.memo.get(TOKEN_MEMO) as RememberedToken | undefined
  if (known === undefined || head.authorization === undefined) return undefined
  if (known.untilMs <= monotonicMs || known.epoch !== live.identityEpoch || known.cluster !== cluster.name)
    return undefined
  if (!known.authorization.is(head.authorization)) return undefined
  gw.tokens.reused(cluster.name)
  return known.identity
}

function fromToken(
  exchange: Exchange,
  live: LiveCluster,
  cluster: CompiledCluster,
  { token, from }: BearerToken & { readonly kind: 'token' },
): Authenticated | Refusal | Promise<Authenticated | Refusal> {
  const { audiences, successTtlMs, failureTtlMs, revoked } = cluster.authentication
  if (token.length > MAX_TOKEN_LENGTH) return refuseFailed(exchange)
  const refusal = revoked === undefined || revoked.tokens.size === 0 ? undefined : refuseToken(revoked, token)
  if (refusal !== undefined) return refusal
  const epoch = live.identityEpoch
  const query = { cluster: cluster.name, epoch, token, audiences, successTtlMs, failureTtlMs }
  const blocked = refuseBlockedToken(exchange, query)
  if (blocked !== undefined && blocked !== 'trial') return blocked
  // A token of a subprotocol is not what `authorization` says, so that field does not stand for it.
  const authorization = from === 'header' ? exchange.head.authorization : undefined
  const verdict = exchange.gw.tokens.review(query, reviewCall(exchange.gw, live, 'token-review', exchange.charge))
  return verdict instanceof Promise
    ? verdict.then((late) => {
        // Once for each answer: a client that goes on with a token that has expired does not guess.
        if (late.kind === 'rejected') fail(exchange)
        else if (late.kind === 'authenticated' && blocked === 'trial') trialPassed(exchange)
        return fromVerdict(exchange, live, query, authorization, late)
      })
    : fromVerdict(exchange, live, query, authorization, verdict)
}

/** Before anybody is asked: neither a remembered answer nor an apiserver that is away counts for a revoked token. */
function refuseToken(revoked: CompiledRevocation, token: string): Refusal | undefined {
  return hasAny(revoked.tokens, tokenHashes(token)) ? refuseRevokedPart(TOKEN_REVOKED) : undefined
}

function fromVerdict(
  { gw, peer }: Exchange,
  live: LiveCluster,
  { cluster, epoch, token }: TokenQuery,
  authorization: string | undefined,
  verdict: TokenReviewResult,
): Authenticated | Refusal {
  switch (verdict.kind) {
    case 'authenticated': {
      const identity = identityOf(gw, verdict, token)
      if (authorization !== undefined && !isRefusal(identity)) {
        const { untilMs } = verdict
        remember(peer, {
          authorization: new KnownSecret(authorization),
          cluster,
          epoch,
          untilMs,
          identity,
        })
      }
      return identity
    }
    case 'rejected':
      return refuseUnauthorized()
    case 'unavailable':
      return refuseUnanswered(gw, live, 'token-review', 'the token could not be verified', verdict)
  }
}

function remember(peer: Peer, token: RememberedToken): void {
  peer.memo.set(TOKEN_MEMO, token)
}

/** A remembered verdict is one object, and of one token: the identity made of it is remembered with it. */
const identities = new WeakMap<TokenReviewResult, Authenticated | Refusal>()

function identityOf(
  gw: Exchange['gw'],
  verdict: TokenReviewResult & { readonly kind: 'authenticated' },
  token: string,
): Authenticated | Refusal {
  const known = identities.get(verdict)
  if (known !== undefined) return known
  const hashes = tokenHashes(token)
  if (hashes[0] !== undefined) gw.failures?.acceptedToken(hashes[0])
  const fresh = authenticated(withAuthenticatedGroup(verdict.user), 'token', hashes)
  identities.set(verdict, fresh)
  return fresh
}

/** One for each cluster, because an identity goes upstream together with the gateway's own credential there. */
const anonymous = new WeakMap<CompiledCluster, Authenticated | Refusal>()

function anonymousIn(cluster: CompiledCluster): Authenticated | Refusal {
  const known = anonymous.get(cluster)
  if (known !== undefined) return known
  const fresh = authenticated(ANONYMOUS, 'anonymous')
  anonymous.set(cluster, fresh)
  return fresh
}

// An address whose credentials have failed too often gets next to nothing without a valid one. Users behind the same address are not locked
// out: a valid client certificate, a token that the connection has shown before, or one that any thread has accepted lately, is looked at as
// ever. A few tokens that are new to the gateway are reviewed, so that whoever starts behind this address, a controller with a fresh
// token, gets in.

/** Without a credential, or with one that is wrong whatever is asked. @returns undefined = it may go on */
function refuseBlocked(exchange: Exchange): Refusal | undefined {
  const blockedMs = blockedFor(exchange)
  return blockedMs === 0 ? undefined : refuseFor(exchange, blockedMs)
}

/** With a token. @returns undefined = it may go on; 'trial' = it may, and has taken something that is given back when it is accepted */
function refuseBlockedToken(exchange: Exchange, query: TokenQuery): Refusal | 'trial' | undefined {
  const blockedMs = blockedFor(exchange)
  if (blockedMs === 0) return undefined
  const { gw, peer, monotonicMs } = exchange
  const hash = tokenHashes(query.token)[0]
  if (hash !== undefined && gw.failures?.isKnownToken(hash) === true) return undefined
  switch (gw.tokens.foresee(query)) {
    case 'authenticated':
    case 'running':
      return undefined
    case 'rejected':
      // A client that goes on with it must not take the place of another one's.
      return refuseFor(exchange, blockedMs)
    case 'unknown': {
      const { source } = peer.addressCharge
      const isLookedAt = gw.budgets.unknownTokens.spend('', source, monotonicMs)
      return isLookedAt ? 'trial' : refuseFor(exchange, blockedMs)
    }
  }
}

function trialPassed({ gw, peer }: Exchange): void {
  gw.budgets.unknownTokens.giveBack('', peer.addressCharge.source)
}

function blockedFor({ gw, peer, monotonicMs }: Exchange): number {
  return gw.failures?.blockedMs(peer.addressCharge.source, monotonicMs) ?? 0
}

function refuseFor({ gw, peer }: Exchange, blockedMs: number): Refusal {
  const { source } = peer.addressCharge
  const seconds = retryAfterBlock(blockedMs, gw.random())
  gw.events.limited('authentication-failures', false)
  return refuse('too-many-failures', blockedAddressMessage(source, seconds, Math.ceil(blockedMs / 1000)), {
    retryAfterSeconds: seconds,
    rule: 'authentication-failures',
  })
}
