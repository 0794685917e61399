// DEMO ONLY. Who sends a request to an apiserver of the demo: client certificate, static token or nobody, and then whom
// the Impersonate-* fields name, if the sender may do that.

import type { TLSSocket } from 'node:tls'
import { ANONYMOUS, type UserInfo } from '../../api/kube/user.ts'
import type { HeaderList } from '../../api/ports/stream.ts'
import {
  impersonatedUser,
  impersonationForbiddenMessage,
  impersonationReviews,
  readImpersonation,
} from '../../core/identity/impersonate.ts'
import { userFromCertificate, withAuthenticatedGroup } from '../../core/identity/user-from-cert.ts'
import { isRefusal } from '../../core/refusal/refusal.ts'
import { ApiError, badRequest, forbidden } from './api-error.ts'
import { isAllowed } from './authorize.ts'
import type { ClusterState } from './call.ts'

/** Throws a 401, 400 or 403. `certificate`: what `certificateUser` said of the connection. */
export function identify(state: ClusterState, certificate: UserInfo | undefined, headers: HeaderList): UserInfo {
  const sender = certificate ?? tokenUser(state, headers) ?? ANONYMOUS
  const wanted = readImpersonation(headers)
  if (wanted === undefined) return sender
  if (isRefusal(wanted)) throw badRequest(wanted.message)
  for (const review of impersonationReviews(wanted)) {
    if (isAllowed(state, sender, { ...review, path: '' })) continue
    throw forbidden(impersonationForbiddenMessage(sender, review, ''))
  }
  return impersonatedUser(wanted)
}

/** The user of a connection's client certificate; undefined when it has none that the client CA signed. */
export function certificateUser(socket: TLSSocket): UserInfo | undefined {
  if (!socket.authorized) return undefined
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined) return undefined
  const attributes: { type: string; value: string }[] = []
  const subject: object = certificate.toLegacyObject().subject
  for (const [type, values] of Object.entries(subject)) {
    for (const value of [values].flat()) attributes.push({ type, value: String(value) })
  }
  const user = userFromCertificate({ attributes }, certificate.fingerprint256)
  return user === undefined || 'error' in user ? undefined : user
}

function tokenUser(state: ClusterState, headers: HeaderList): UserInfo | undefined {
  const at = headers.findIndex((text, i) => i % 2 === 0 && text.toLowerCase() === 'authorization')
  if (at < 0) return undefined
  const [scheme = '', token = ''] = (headers[at + 1] ?? '').trim().split(' ')
  const user = scheme.toLowerCase() === 'bearer' ? userOfToken(state, token) : undefined
  if (user === undefined) throw new ApiError(401, 'Unauthorized', 'Unauthorized')
  return user
}

export function userOfToken(state: ClusterState, token: string): UserInfo | undefined {
  const user = state.tokens.get(token)
  return user === undefined ? undefined : withAuthenticatedGroup(user)
}
