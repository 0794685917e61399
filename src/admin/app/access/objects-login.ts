// Authenticates users of the admin listener with the objects' API server: the embedded one by its own authenticators and roles, a cluster's by
// reviews, and by the CA it publishes for client certificates.

import { type Caller, isRevoked } from '../../../apiserver/access/authenticate.ts'
import { type RoleBindings, roleOf } from '../../../apiserver/access/authorize.ts'
import type { PlainRequest } from '../../../gateway/io/listener/http-plain.ts'
import type { HeaderList, Peer } from '../../../kit/api/stream.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import { userFromCertificate } from '../../../pki/core/user-from-cert.ts'
import { verifyClientCertificate } from '../../../pki/io/x509-chain.ts'
import type { AdminRefusal, AdminRoute, AdminUser } from '../../io/server/route.ts'
import type { AdminLogin } from './admin-access.ts'
import { type AccessReviews, refusal } from './review-access.ts'

const NO_CREDENTIAL = refusal(401, 'needs a bearer token, or a client certificate')

interface EmbeddedLoginDeps {
  clientCA(): string
  authenticate(peer: Pick<Peer, 'certificate' | 'memo'>, head: HeaderList): Caller
  /** Await it first; undefined = nothing to wait for. */
  before(head: HeaderList): Promise<void> | undefined
  readonly bindings: RoleBindings
}

/** The admin role may do everything, the view role may only read. */
export function embeddedLogin({ clientCA, authenticate, before, bindings }: EmbeddedLoginDeps): AdminLogin {
  return {
    clientCA,
    async admit({ certificate }, token, route) {
      const head: HeaderList = token === undefined ? [] : ['authorization', `Bearer ${token}`]
      await before(head)
      const caller = authenticate({ certificate, memo: new Map() }, head)
      if (caller === 'anonymous') return NO_CREDENTIAL
      if (caller === 'invalid') return refusal(401, 'the credential is not accepted')
      if (isRevoked(caller)) return refusal(401, caller.revoked)
      const role = roleOf(bindings, caller)
      if (role === 'admin' || (role === 'view' && route.access === 'view')) return caller
      return refusal(403, `user ${JSON.stringify(caller.name)} has no role that may use ${route.path}`)
    },
  }
}

interface ReviewedLoginDeps {
  readonly reviews: AccessReviews
  clientCA(): string
  /** Name of the gateway's own user, shared by other replicas. '' = unknown. */
  ownUser(): string
  /** Wall clock, milliseconds since the epoch. */
  readonly now: () => number
}

/** Like kube-apiserver's own components: path and verb decide. */
export function reviewedLogin({ reviews, clientCA, ownUser, now }: ReviewedLoginDeps): AdminLogin {
  const who = async (request: PlainRequest, token: string | undefined): Promise<UserInfo | AdminRefusal> => {
    const presented = certificateUser(request, clientCA(), now())
    if (presented !== undefined) return presented
    return token === undefined ? NO_CREDENTIAL : await reviews.who(token, request.remoteAddress)
  }
  return {
    clientCA,
    async admit(request, token, route): Promise<AdminUser | AdminRefusal> {
      const user = await who(request, token)
      if ('code' in user) return user
      if (ownUser() !== '' && user.name === ownUser() && isOfReplicas(route)) return { ...user, replica: true }
      const attributes = { path: reviewedPath(request.path), verb: request.method.toLowerCase() }
      return (await reviews.may(user, attributes, request.remoteAddress)) ?? user
    },
  }
}

/**
 * ClusterRole system:discovery, bound to every authenticated user, has `get` on /api/*: under its real path the API would be open to every
 * ServiceAccount.
 */
function reviewedPath(path: string): string {
  return path.startsWith('/api/') ? `/portcullis${path}` : path
}

/** undefined = there is none with a name: other credentials decide. */
function certificateUser(
  { certificate }: PlainRequest,
  clientCA: string,
  nowMs: number,
): UserInfo | AdminRefusal | undefined {
  if (certificate === undefined || clientCA === '') return undefined
  const verified = verifyClientCertificate(certificate, clientCA, nowMs)
  if ('error' in verified) return refusal(401, 'the client certificate is not accepted')
  const user = userFromCertificate(verified.subject, verified.sha256)
  return user !== undefined && 'error' in user ? refusal(401, 'the client certificate is not accepted') : user
}

/** Requests between replicas: everything that is merged. */
function isOfReplicas({ replicas }: AdminRoute): boolean {
  return replicas === true
}
