// The gateway's own review calls to a cluster: one healthy endpoint after the other until one answers.

import { paceMs } from '../core/pace.ts'
import { KubeCallError, kubeCall } from '../io/kube-call.ts'
import type { ReviewCall } from '../io/token-review.ts'
import type { LiveCluster } from '../state/clusters.ts'
import type { Endpoint } from '../state/endpoints.ts'
import type { Gateway } from './gateway.ts'

/** As kube-apiserver's webhook authenticator: a review that takes longer is no answer. */
const REVIEW_TIMEOUT_MS = 10_000
const MAX_TRIES = 3

/** @throws {KubeCallError} inside the returned call, when no endpoint answered */
export function reviewCall(gw: Gateway, live: LiveCluster, path: string): ReviewCall {
  return async (body) => {
    const cluster = live.compiled
    await waitForTurn(gw, live)
    const candidates = readyEndpoints(gw, live)
    let last = 'no healthy endpoint'
    for (const { url, authority } of candidates.slice(0, MAX_TRIES)) {
      const connections = gw.upstreams.get(cluster.name, url)
      if (connections === undefined) continue
      try {
        const answer = await kubeCall(connections, {
          method: 'POST',
          path,
          authority,
          token: cluster.client.bearerToken,
          body,
          timeoutMs: REVIEW_TIMEOUT_MS,
        })
        // Overloaded or shutting down: another one may answer.
        if (answer.status !== 429 && answer.status < 500) return answer
        last = `answered with ${answer.status}`
      } catch (error) {
        if (!(error instanceof KubeCallError)) throw error
        last = error.message
      }
    }
    throw new KubeCallError(last)
  }
}

/** clientConfig.qps: reviews that come too fast wait, up to the time that a review may take. */
async function waitForTurn(gw: Gateway, live: LiveCluster): Promise<void> {
  const { qps, burst } = live.compiled.client
  const waitMs = paceMs(live.pace, qps, burst, gw.clock.monotonic())
  if (waitMs > REVIEW_TIMEOUT_MS) throw new KubeCallError('clientConfig.qps allows no more calls')
  if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
}

function readyEndpoints(gw: Gateway, { endpoints }: LiveCluster): Endpoint[] {
  const nowMs = gw.clock.monotonic()
  const ready = endpoints.all.filter((_, i) => endpoints.available(i, nowMs))
  // As for the clients' requests: one that nobody has checked yet is better than none.
  if (ready.length === 0)
    ready.push(...endpoints.all.filter(({ enabled, health }) => enabled && health.state === 'unknown'))
  const start = Math.floor(gw.random() * ready.length)
  return [...ready.slice(start), ...ready.slice(0, start)]
}
