// Authenticates the sender: x509, then bearer token, then anonymous (apiserver/pkg/authentication/request/union).
// A credential that is present but wrong is 401, never anonymous. Results are cached per connection. Then the user that it wants to act as.

import type { Peer } from '../../kit/api/stream.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { ANONYMOUS } from '../../kube/api/user.ts'
import { userFromCertificate, withAuthenticatedGroup } from '../../pki/core/user-from-cert.ts'
import { verifyClientCertificate } from '../../pki/io/x509-chain.ts'
import type { CredentialOrigin } from '../api/identity-seen.ts'
import { refuseRevokedPart, refuseUnauthorized } from '../core/admission/steps.ts'
import type { CompiledCluster, CompiledIssuer, CompiledRevocation } from '../core/cluster/compiled-cluster.ts'
import { CERTIFICATE_REVOKED, hasAny, TOKEN_REVOKED } from '../core/cluster/revocation.ts'
import {
  type AccessReviewAttributes,
  type ClientImpersonation,
  impersonatedUser,
  impersonationForbiddenMessage,
  impersonationReviews,
  readImpersonation,
} from '../core/identity/impersonate.ts'
import { type BearerToken, readBearerToken } from '../core/request/websocket-token.ts'
import type { AccessReviewResult } from '../io/reviews/access-review.ts'
import { certificateHashes, tokenHashes } from '../io/reviews/credential-hashes.ts'
import { sessionOfReviewed } from '../io/reviews/issuer-tokens.ts'
import type { TokenQuery, TokenReviewResult } from '../io/reviews/token-review.ts'
import { KnownSecret } from '../io/secrets/known-secret.ts'
import type { LiveCluster } from '../state/clusters.ts'
import { fail, refuseBlocked, refuseBlockedToken, refuseFailed, trialPassed } from './blocked-address.ts'
import { accessVerdict, REVIEW_TIMEOUT_MS, refuseUnanswered, reviewCall } from './calls/kube-review.ts'
import type { Exchange } from './exchange/exchange.ts'
import { type Authenticated, authenticated } from './exchange/identity.ts'

/** Result of verifying the connection's certificate for one cluster. */
interface RememberedCertificate {
  /** The client CAs it was checked against: a new bundle requires a new check. */
  readonly clientCA: string
  readonly notAfterMs: number
  readonly outcome: Authenticated | Refusal | undefined
  /** Identify the certificate in revocations; empty when it is not valid anyway. */
  readonly hashes: readonly string[]
}

/** The last valid token of a connection. */
interface RememberedToken {
  /** The `authorization` field that carried it. */
  readonly authorization: KnownSecret
  readonly cluster: string
  /** Epoch at the time of the answer: a newer one requires a new review. */
  readonly epoch: number
  /** Monotonic milliseconds, from the answer: never cached longer here than there. */
  readonly untilMs: number
  readonly identity: Authenticated
}

/** Key in the connection's memory; the other keys are cluster names, which have no colon. */
const TOKEN_MEMO = ':token'
const FAILED_MEMO = ':failed-certificate'
/** Characters; several times what any issuer makes. A review that may have to wait must not hold a megabyte. */
export const MAX_BEARER_LENGTH: number = 64 * 1024
const NEVER = Number.POSITIVE_INFINITY

/** Returns a promise only if a token has to be reviewed. Revoked users are checked afterwards (refuseRevoked). */
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
  // Without either field there is no token.
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

/** Counted once per connection: all its requests carry the same certificate. */
export function refuseCertificate<Answer>(exchange: Exchange, refusal: Answer): Answer {
  const { memo } = exchange.peer
  if (!memo.has(FAILED_MEMO)) {
    memo.set(FAILED_MEMO, true)
    fail(exchange)
  }
  return refusal
}

/** undefined: a certificate without a user name leaves the decision to the next authenticator. */
function fromCertificate(peer: Peer, cluster: CompiledCluster, nowMs: number): Authenticated | Refusal | undefined {
  let known = peer.memo.get(cluster.name) as RememberedCertificate | undefined
  if (known === undefined || known.clientCA !== cluster.serving.clientCA || known.notAfterMs <= nowMs) {
    known = checkCertificate(peer, cluster, nowMs)
    peer.memo.set(cluster.name, known)
  }
  const { revoked } = cluster.authentication
  // A revoked certificate without a user name is refused, too: it is not the same as no certificate.
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
  const outcome = from(authenticated(user, 'x509', hashes), { by: BY_CERTIFICATE, expiresMs: notAfterMs })
  return { clientCA, notAfterMs, outcome, hashes }
}

const BY_CERTIFICATE = 'certificate'
/** Its TokenReview does not say when a token expires. */
const BY_CLUSTER: CredentialOrigin = { by: 'cluster', expiresMs: 0 }

function from(outcome: Authenticated | Refusal, origin: CredentialOrigin): Authenticated | Refusal {
  if (!isRefusal(outcome)) outcome.origin = origin
  return outcome
}

/** Only the identical field on the same connection for the same cluster counts as the same token. */
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
  const { audiences, successTtlMs, failureTtlMs, revoked, issuers } = cluster.authentication
  if (token.length > MAX_BEARER_LENGTH) return refuseFailed(exchange)
  const refusal = revoked === undefined || revoked.tokens.size === 0 ? undefined : refuseToken(revoked, token)
  if (refusal !== undefined) return refusal
  const epoch = live.identityEpoch
  const query = { cluster: cluster.name, epoch, token, audiences, successTtlMs, failureTtlMs }
  const blocked = refuseBlockedToken(exchange, token, () => exchange.gw.tokens.foresee(query))
  if (blocked !== undefined && blocked !== 'trial') return blocked
  // A token from a WebSocket subprotocol is not in `authorization`, so that field must not be the cache key.
  const authorization = from === 'header' ? exchange.head.authorization : undefined
  const { gw } = exchange
  const inForce = (): readonly CompiledIssuer[] => live.compiled.authentication.issuers
  const vouch = issuers.length === 0 ? undefined : () => gw.issuers.vouch(cluster.name, inForce, token)
  const verdict = gw.tokens.review(query, reviewCall(gw, live, 'token-review', exchange.charge), vouch)
  if (!(verdict instanceof Promise) && verdict.kind === 'authenticated' && blocked === 'trial') trialPassed(exchange)
  return verdict instanceof Promise
    ? verdict.then((late) => {
        // Count once per review: a client that keeps sending an expired token is not guessing.
        if (late.kind === 'rejected') fail(exchange)
        else if (late.kind === 'authenticated' && blocked === 'trial') trialPassed(exchange)
        return fromVerdict(exchange, live, query, authorization, late)
      })
    : fromVerdict(exchange, live, query, authorization, verdict)
}

/** Before any review: a revoked token must not pass on a cached answer or because an apiserver is down. */
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
      const identity = identityOf(gw, verdict, token, live.compiled.authentication.issuers)
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

/** A cached verdict is one object for one token, so the identity derived from it is cached by that object. */
const identities = new WeakMap<TokenReviewResult, Authenticated | Refusal>()

function identityOf(
  gw: Exchange['gw'],
  verdict: TokenReviewResult & { readonly kind: 'authenticated' },
  token: string,
  issuers: readonly CompiledIssuer[],
): Authenticated | Refusal {
  const known = identities.get(verdict)
  if (known !== undefined) return known
  const hashes = tokenHashes(token)
  if (hashes[0] !== undefined) gw.failures?.acceptedToken(hashes[0])
  const origin = verdict.origin ?? reviewedByCluster(token, issuers)
  const fresh = from(authenticated(withAuthenticatedGroup(verdict.user), 'token', hashes), origin)
  identities.set(verdict, fresh)
  return fresh
}

function reviewedByCluster(token: string, issuers: readonly CompiledIssuer[]): CredentialOrigin {
  const session = sessionOfReviewed(token, issuers)
  return session === undefined ? BY_CLUSTER : { ...BY_CLUSTER, session }
}

/** One per cluster, because an identity goes upstream together with the gateway's own credential there. */
const anonymous = new WeakMap<CompiledCluster, Authenticated | Refusal>()

function anonymousIn(cluster: CompiledCluster): Authenticated | Refusal {
  const known = anonymous.get(cluster)
  if (known !== undefined) return known
  const fresh = authenticated(ANONYMOUS, 'anonymous')
  anonymous.set(cluster, fresh)
  return fresh
}

// === impersonation ===

/**
 * The identity to act as (kubectl --as); unchanged if the client requests no impersonation. Each item is authorized by a SubjectAccessReview sent as the
 * gateway, then the requester's identity is replaced (apiserver/pkg/endpoints/filters/impersonation).
 */
export function impersonate(
  exchange: Exchange,
  live: LiveCluster,
  requester: Authenticated,
): Authenticated | Refusal | Promise<Authenticated | Refusal> {
  const wanted = exchange.head.impersonates ? readImpersonation(exchange.list) : undefined
  if (wanted === undefined) return requester
  if (isRefusal(wanted)) return wanted
  return impersonated(exchange, live, requester, wanted)
}

/** Reviews one by one, user first, until the first denial: a requester without the right costs one review, whatever it asks for. */
async function impersonated(
  exchange: Exchange,
  live: LiveCluster,
  requester: Authenticated,
  wanted: ClientImpersonation,
): Promise<Authenticated | Refusal> {
  const { clock } = exchange.gw
  const endsAtMs = clock.monotonic() + REVIEW_TIMEOUT_MS
  for (const { asked, meant } of impersonationQuestions(requester, wanted)) {
    const timeoutMs = endsAtMs - clock.monotonic()
    const hasTime = timeoutMs > 0 && !exchange.gone
    const verdict = hasTime ? await accessVerdict(exchange, live, requester, asked, timeoutMs) : NO_TIME
    if (verdict.kind === 'unavailable') return refuseUnanswered(exchange.gw, live, 'access-review', COULD_NOT, verdict)
    if (verdict.kind === 'denied')
      return refuse('impersonation-forbidden', impersonationForbiddenMessage(requester.user, meant, verdict.reason))
  }
  return authenticated(impersonatedUser(wanted), requester.kind === 'anonymous' ? 'anonymous' : 'token')
}

/**
 * An anonymous requester is unverified, and must not cause a review for each name it makes up: it may impersonate
 * users of any name, or none. That is a single review for all such requests.
 */
function impersonationQuestions(requester: Authenticated, wanted: ClientImpersonation): readonly Question[] {
  const all = impersonationReviews(wanted).map((attributes) => ({ asked: attributes, meant: attributes }))
  const [first] = all
  if (requester.kind !== 'anonymous' || first === undefined) return all
  return [{ asked: { ...first.asked, namespace: '', name: '' }, meant: first.meant }, ...all]
}

interface Question {
  readonly asked: AccessReviewAttributes
  /** What a denial is about. */
  readonly meant: AccessReviewAttributes
}

const COULD_NOT = 'impersonation could not be authorized'

const NO_TIME: AccessReviewResult = {
  kind: 'unavailable',
  message: `the client has gone, or the access reviews took more than ${REVIEW_TIMEOUT_MS} ms`,
  retryAfterSeconds: 0,
}
