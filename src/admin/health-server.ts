// The health listener, for probes, load balancers and Prometheus: /livez, /readyz and /metrics, nothing else of the admin listener. It may
// be reached from other machines: /metrics asks for a credential there.

import type { ListenAddress } from '../core/cluster/listen-address.ts'
import { type PlainResponse, type PlainServer, type PlainTls, startPlainServer } from '../io/listener/http-plain.ts'
import { type AdminAccess, answerRoute, NOBODY, TEXT } from './route.ts'
import { type AdminState, healthRoutes, type MetricsText, metricsRoute } from './routes.ts'

/** Why /metrics is not shown. */
export interface MetricsRefusal {
  readonly code: 401 | 403 | 429 | 503
  /** One line for people. */
  readonly message: string
  /** 0 = another attempt would not help. */
  readonly retryAfterSeconds: number
}

/** Who may read /metrics; undefined = whoever asks here may. Never rejects. */
export type MetricsAccess = (authorization: string, remoteAddress: string) => Promise<MetricsRefusal | undefined>

export interface HealthServerOptions {
  readonly listen: ListenAddress
  /** Default: none. */
  readonly tls?: PlainTls
  readonly state: Pick<AdminState, 'live' | 'ready'>
  readonly metrics: MetricsText
  readonly access: MetricsAccess
}

/** Rejects with the system's error (EADDRINUSE ...) when it cannot listen. */
export function startHealthServer({ listen, tls, state, metrics, access }: HealthServerOptions): Promise<PlainServer> {
  const routes = [...healthRoutes(state).filter(({ path }) => path !== '/healthz'), metricsRoute(metrics)]
  const admit: AdminAccess = async ({ authorization, remoteAddress }) => {
    const refusal = await access(authorization, remoteAddress)
    return refusal === undefined ? { user: NOBODY } : { refused: refused(refusal) }
  }
  return startPlainServer(listen, (request) => answerRoute(request, routes, admit), tls)
}

function refused({ code, message, retryAfterSeconds }: MetricsRefusal): PlainResponse {
  const headers = {
    ...(code === 401 && { 'www-authenticate': 'Bearer' }),
    ...(retryAfterSeconds > 0 && { 'retry-after': String(retryAfterSeconds) }),
  }
  return { code, contentType: TEXT, body: `${message}\n`, headers }
}
