// The gateway's own review calls to a cluster.

import type { ReviewCall } from '../io/token-review.ts'
import type { LiveCluster } from '../state/clusters.ts'
import { callAsGateway } from './call-as-gateway.ts'
import type { Gateway } from './gateway.ts'

/** As kube-apiserver's webhook authenticator: a review that takes longer is no answer. */
const REVIEW_TIMEOUT_MS = 10_000

/** @throws {KubeCallError} inside the returned call, when no endpoint answered */
export function reviewCall(gw: Gateway, live: LiveCluster, path: string): ReviewCall {
  return (body) => callAsGateway(gw, live, { method: 'POST', path, body, timeoutMs: REVIEW_TIMEOUT_MS })
}
