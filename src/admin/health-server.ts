// The health listener, for probes, load balancers and Prometheus: /livez, /readyz and /metrics, nothing else of the admin listener. It may
// be reached from other machines: /metrics asks for a credential there.

import type { ListenAddress } from '../core/cluster/listen-address.ts'
import {
  type PlainRequest,
  type PlainResponse,
  type PlainServer,
  type PlainTls,
  startPlainServer,
} from '../io/listener/http-plain.ts'
import { type AdminState, adminResponse, type MetricsText } from './routes.ts'

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

const PATHS = ['/livez', '/readyz', '/metrics']
const TEXT = 'text/plain; charset=utf-8'

/** Rejects with the system's error (EADDRINUSE ...) when it cannot listen. */
export function startHealthServer({ listen, tls, ...parts }: HealthServerOptions): Promise<PlainServer> {
  return startPlainServer(listen, (request) => healthResponse(request, parts), tls)
}

/** The answer to one request; rejects only when the metrics do. */
async function healthResponse(
  request: PlainRequest,
  { state, metrics, access }: Omit<HealthServerOptions, 'listen' | 'tls'>,
): Promise<PlainResponse> {
  const { path, method, authorization, remoteAddress } = request
  if (!PATHS.includes(path)) {
    return { code: 404, contentType: TEXT, body: `not found; paths: ${PATHS.join(' ')}\n` }
  }
  if (path === '/metrics' && method === 'GET') {
    const refusal = await access(authorization, remoteAddress)
    if (refusal !== undefined) return refused(refusal)
  }
  return adminResponse(request, { ...state, describe: () => ({}) }, metrics)
}

function refused({ code, message, retryAfterSeconds }: MetricsRefusal): PlainResponse {
  const headers = {
    ...(code === 401 && { 'www-authenticate': 'Bearer' }),
    ...(retryAfterSeconds > 0 && { 'retry-after': String(retryAfterSeconds) }),
  }
  return { code, contentType: TEXT, body: `${message}\n`, headers }
}
