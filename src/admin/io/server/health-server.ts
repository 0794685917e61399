// The health listener, for probes, load balancers and Prometheus: /livez, /readyz and /metrics, and nothing else of the admin listener. It may be
// reachable from other machines, where /metrics requires a credential.

import { type PlainServer, type PlainTls, startPlainServer } from '../../../gateway/io/listener/http-plain.ts'
import type { ListenAddress } from '../../../kit/core/listen-address.ts'
import { type AdminAccess, type AdminRefusal, adminRefusalResponse, answerRoute, NO_USER } from './route.ts'
import { type AdminState, healthRoutes, type MetricsText, metricsRoute } from './routes.ts'

/** Decides who may read /metrics; undefined = allowed. Never rejects. */
export type MetricsAccess = (authorization: string, remoteAddress: string) => Promise<AdminRefusal | undefined>

interface HealthServerOptions {
  readonly listen: ListenAddress
  /** Default: none. */
  readonly tls?: PlainTls
  readonly state: Pick<AdminState, 'live' | 'ready'>
  readonly metrics: MetricsText
  readonly access: MetricsAccess
}

/** Rejects with the system's error (EADDRINUSE ...) if it cannot listen. */
export function startHealthServer({ listen, tls, state, metrics, access }: HealthServerOptions): Promise<PlainServer> {
  const routes = [...healthRoutes(state).filter(({ path }) => path !== '/healthz'), metricsRoute(metrics)]
  const admit: AdminAccess = async ({ authorization, remoteAddress }) => {
    const refusal = await access(authorization, remoteAddress)
    return refusal === undefined ? { user: NO_USER } : { refused: adminRefusalResponse(refusal) }
  }
  return startPlainServer(listen, (request) => answerRoute(request, routes, admit), tls)
}
