// The admin listener: HTTP for the operator and for probes, on loopback unless configured otherwise. The proxy ports do not expose it.

import {
  type AnyResponse,
  type PlainRequest,
  type PlainServer,
  type PlainTls,
  startPlainServer,
} from '../../../gateway/io/listener/http-plain.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { type ListenAddress, parseListenAddress } from '../../../kit/core/listen-address.ts'
import {
  type AdminAccess,
  type AdminRefusal,
  type AdminRoute,
  adminRefusalResponse,
  answerRoute,
  NO_USER,
  OPEN_ADMIN,
} from './route.ts'
import { type AdminState, configRoute, healthRoutes, type MetricsText, metricsRoute } from './routes.ts'

interface AdminServerOptions {
  /** `host:port`; port 0 = any free one. */
  readonly listen: string
  readonly state: AdminState
  readonly metrics: MetricsText
  /** Routes besides health, metrics and configuration. Default: none. */
  readonly routes?: readonly AdminRoute[]
  /** Default: every client. */
  readonly access?: AdminAccess
  /** Default: none. */
  readonly tls?: PlainTls | undefined
  /** Logs responses that failed. Default: none. */
  readonly log?: Pick<Logger, 'error'>
}

/** Rejects with one clear line if the address is invalid or in use. */
export async function startAdminServer(options: AdminServerOptions): Promise<PlainServer> {
  const address = parseListenAddress(options.listen)
  if ('error' in address) throw new Error(`admin listen address "${options.listen}" ${address.error}`)
  const { state, metrics, routes = [], access = OPEN_ADMIN } = options
  const all = [...healthRoutes(state), metricsRoute(metrics), configRoute(state), ...routes]
  try {
    const answer = async (request: PlainRequest): Promise<AnyResponse> => {
      const response = await answerRoute(request, all, access)
      return { ...response, headers: { ...PAGE_HEADERS, ...response.headers } }
    }
    return await startPlainServer(address, answer, options.tls, (error, path) => {
      options.log?.error('an answer of the admin listener failed', { path, error })
    })
  } catch (error) {
    const why = errorMessage(error)
    throw new Error(`cannot listen on ${options.listen} for the admin server: ${why}`, { cause: error })
  }
}

// Browser security headers of every response: only this page's own files may run or load, no page may frame it, and no other origin may read it
// (there are no CORS headers).

/** The browser refuses inline code, eval, and strings that become markup. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  // Not no-referrer: browsers would then omit the origin of forms.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

// The health listener, for probes, load balancers and Prometheus: /livez, /readyz and /metrics, and nothing else of the admin listener. It may be
// reachable from other machines, where /metrics requires a credential.

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
