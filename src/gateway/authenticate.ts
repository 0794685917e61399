// Who sends a request: x509, then bearer token, then anonymous (apiserver/pkg/authentication/request/union).
// A credential that is there but wrong is 401, never anonymous.

import type { HeaderList, Peer } from '../api/stream.ts'
import { ANONYMOUS, type UserInfo } from '../api/user.ts'
import type { CompiledCluster } from '../core/compiled-cluster.ts'
import { identityHeaders, identityProblem } from '../core/impersonate.ts'
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts'
import { userFromCertificate, withAuthenticatedGroup } from '../core/user-from-cert.ts'
import { readBearerToken } from '../core/websocket-token.ts'
import { verifyClientCertificate } from '../io/x509-chain.ts'
import type { LiveCluster } from '../state/clusters.ts'
import type { Gateway } from './gateway.ts'
import { reviewCall } from './kube-review.ts'

export interface Authenticated {
  readonly user: UserInfo
  readonly kind: 'x509' | 'token' | 'anonymous'
  /** The impersonation header fields that make upstream see this user, encoded once. */
  readonly identity: HeaderList
}

interface RememberedCertificate {
  /** The client CAs it was checked against: another bundle means another check. */
  readonly clientCA: string
  readonly notAfterMs: number
  readonly outcome: Authenticated | Refusal | undefined
}

const TOKEN_REVIEW_PATH = '/apis/authentication.k8s.io/v1/tokenreviews'
const UNAUTHORIZED = 'Unauthorized'
const NEVER = Number.POSITIVE_INFINITY

let anonymous: Authenticated | undefined

export function authenticate(
  gw: Gateway,
  peer: Peer,
  head: HeaderList,
  live: LiveCluster,
): Authenticated | Refusal | Promise<Authenticated | Refusal> {
  const cluster = live.compiled
  const byCertificate = peer.certificate === undefined ? undefined : fromCertificate(gw, peer, cluster)
  if (byCertificate !== undefined && !isRefusal(byCertificate)) return byCertificate
  const bearer = readBearerToken(head)
  if (bearer.kind === 'invalid') return refuse('unauthorized', UNAUTHORIZED)
  if (bearer.kind === 'token') return fromToken(gw, live, bearer.token)
  if (byCertificate !== undefined) return byCertificate
  if (!cluster.authentication.anonymous) return refuse('unauthorized', UNAUTHORIZED)
  anonymous ??= { user: ANONYMOUS, kind: 'anonymous', identity: identityHeaders(ANONYMOUS) }
  return anonymous
}

/** undefined = a certificate without a user name has no opinion. */
function fromCertificate(gw: Gateway, peer: Peer, cluster: CompiledCluster): Authenticated | Refusal | undefined {
  const nowMs = gw.clock.now()
  const known = peer.memo.get(cluster.name) as RememberedCertificate | undefined
  if (known !== undefined && known.clientCA === cluster.serving.clientCA && known.notAfterMs > nowMs)
    return known.outcome
  const fresh = checkCertificate(peer, cluster, nowMs)
  peer.memo.set(cluster.name, fresh)
  return fresh.outcome
}

function checkCertificate(peer: Peer, cluster: CompiledCluster, nowMs: number): RememberedCertificate {
  const clientCA = cluster.serving.clientCA
  const refused = (notAfterMs: number): RememberedCertificate => ({
    clientCA,
    notAfterMs,
    outcome: refuse('unauthorized', UNAUTHORIZED),
  })
  if (peer.certificate === undefined) return refused(NEVER)
  const verified = verifyClientCertificate(peer.certificate, clientCA, nowMs)
  if ('error' in verified) return refused(NEVER)
  const user = userFromCertificate(verified.subject, verified.sha256)
  if (user === undefined) return { clientCA, notAfterMs: verified.notAfterMs, outcome: undefined }
  if ('error' in user) return refused(verified.notAfterMs)
  return { clientCA, notAfterMs: verified.notAfterMs, outcome: authenticated(user, 'x509') }
}

async function fromToken(gw: Gateway, live: LiveCluster, token: string): Promise<Authenticated | Refusal> {
  const cluster = live.compiled
  const { audiences, successTtlMs, failureTtlMs } = cluster.authentication
  const query = { cluster: cluster.name, epoch: live.identityEpoch, token, audiences, successTtlMs, failureTtlMs }
  const verdict = await gw.tokens.review(query, reviewCall(gw, live, TOKEN_REVIEW_PATH))
  switch (verdict.kind) {
    case 'authenticated':
      return identityOf(verdict.user)
    case 'rejected':
      return refuse('unauthorized', UNAUTHORIZED)
    case 'unavailable':
      gw.log.warn('token review failed', { cluster: cluster.name, reason: verdict.message })
      return refuse(
        'authentication-unavailable',
        `the token could not be verified: cluster "${cluster.name}" does not answer`,
      )
  }
}

/** A remembered verdict is one object: its encoded form is remembered with it. */
const identities = new WeakMap<UserInfo, Authenticated | Refusal>()

function identityOf(user: UserInfo): Authenticated | Refusal {
  const known = identities.get(user)
  if (known !== undefined) return known
  const fresh = authenticated(withAuthenticatedGroup(user), 'token')
  identities.set(user, fresh)
  return fresh
}

/** Fails closed: an identity that cannot be told to upstream exactly is no identity. */
export function authenticated(user: UserInfo, kind: Authenticated['kind']): Authenticated | Refusal {
  if (identityProblem(user) !== '') return refuse('unauthorized', UNAUTHORIZED)
  return { user, kind, identity: identityHeaders(user) }
}
