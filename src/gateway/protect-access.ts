// Whether the caller may delete at all, asked before the ledger is: who may not must neither learn its numbers nor spend what
// others need. Upstream decides in the end, so that no answer is no refusal.

import type { UserInfo } from '../api/user.ts'
import { userSource } from '../core/call-source.ts'
import { type AccessReviewAttributes, impersonationForbiddenMessage } from '../core/impersonate.ts'
import { type Refusal, refuse } from '../core/refusal.ts'
import type { RequestInfo } from '../core/request-info.ts'
import type { AccessVerdict } from '../io/access-review.ts'
import type { LiveCluster } from '../state/clusters.ts'
import type { Gateway } from './gateway.ts'
import { reviewCall } from './kube-review.ts'

/** First whether any pod of the namespace may be deleted, which is remembered; then this one. */
export async function refuseForbidden(
  gw: Gateway,
  live: LiveCluster,
  user: UserInfo,
  info: RequestInfo,
): Promise<Refusal | undefined> {
  const any: AccessReviewAttributes = {
    verb: info.verb,
    group: '',
    resource: 'pods',
    subresource: info.subresource,
    namespace: info.namespace,
    name: '',
  }
  const named = { ...any, name: info.name }
  let verdict = await ask(gw, live, user, any)
  if (verdict.kind === 'denied' && info.name !== '') verdict = await ask(gw, live, user, named)
  if (verdict.kind === 'unavailable') {
    gw.log.warn('access review failed', { cluster: live.compiled.name, reason: verdict.message })
    return undefined
  }
  if (verdict.kind === 'allowed') return undefined
  const message = impersonationForbiddenMessage(user, named, verdict.reason)
  return refuse('protection-forbidden', message, { object: { kind: 'pods', name: info.name } })
}

function ask(
  gw: Gateway,
  live: LiveCluster,
  user: UserInfo,
  attributes: AccessReviewAttributes,
): Promise<AccessVerdict> {
  const query = { cluster: live.compiled.name, epoch: live.identityEpoch, user, attributes }
  return gw.access.review(query, reviewCall(gw, live, 'access-review', userSource(user.name)))
}
