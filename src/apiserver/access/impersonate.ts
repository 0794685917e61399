// `kubectl --as`: runs a request as another user, for callers who may impersonate (apiserver/pkg/endpoints/filters/impersonation).
// A server that ignored these headers would run a request with more rights than intended.

import { impersonatedUser, impersonationReviews, readImpersonation } from '../../gateway/core/identity/impersonate.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import { isRefusal } from '../../kit/core/refusal/refusal.ts'
import { StatusError, statusError } from '../../kube/api/status.ts'
import { ANONYMOUS, type UserInfo } from '../../kube/api/user.ts'
import { type Authorizer, accessForbidden } from './authorize.ts'

/**
 * The user that the request runs as: the caller, unless it impersonates another user.
 * @throws {StatusError} 403 if the caller may not impersonate everything it asks for, 400 if the headers are inconsistent
 */
export function effectiveUser(
  caller: UserInfo | 'anonymous',
  head: HeaderList,
  authorize: Authorizer,
): UserInfo | 'anonymous' {
  const wanted = readImpersonation(head)
  if (wanted === undefined) return caller
  if (isRefusal(wanted)) throw statusError('BadRequest', wanted.message)
  for (const attributes of impersonationReviews(wanted)) {
    if (!authorize(caller, attributes)) throw new StatusError(accessForbidden(caller, attributes))
  }
  return wanted.name === ANONYMOUS.name ? 'anonymous' : impersonatedUser(wanted)
}
