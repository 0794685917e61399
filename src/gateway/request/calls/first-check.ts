// Waits for the first health check of a cluster, which is run sooner for that: after a start with thousands of clusters, and for a new one. Without
// it a request could be sent to a server that is down while another one serves, or to a kube-apiserver that is not ready.

import type { LiveCluster } from '../../state/clusters.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../exchange/gateway.ts'

/** For a request, which holds its share meanwhile. Resolves early if the client leaves. */
export function firstCheckFor(exchange: Exchange, live: LiveCluster): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      exchange.onGone = undefined
      resolve()
    }
    exchange.onGone = done
    void firstCheck(exchange.gw, live).then(done)
  })
}

/** For a call of the gateway's own. */
export async function firstCheckWithin(gw: Gateway, live: LiveCluster, withinMs: number): Promise<void> {
  let late: NodeJS.Timeout | undefined
  const tooLate = new Promise<void>((resolve) => {
    late = setTimeout(resolve, withinMs).unref()
  })
  await Promise.race([firstCheck(gw, live), tooLate])
  clearTimeout(late)
}

function firstCheck({ events }: Gateway, { compiled, endpoints }: LiveCluster): Promise<void> {
  return endpoints.firstCheck(() => events.awaitsCheck(compiled.name))
}
