// The admin listener: HTTP for the operator and for probes, loopback unless configured otherwise. Nothing of it is reachable through the
// proxy ports.

import {
  type AnyResponse,
  type PlainRequest,
  type PlainServer,
  type PlainTls,
  startPlainServer,
} from '../../gateway/io/listener/http-plain.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { parseListenAddress } from '../../kit/core/listen-address.ts'
import { type AdminAccess, type AdminRoute, answerRoute, OPEN_ADMIN } from './route.ts'
import { type AdminState, configRoute, healthRoutes, type MetricsText, metricsRoute } from './routes.ts'

interface AdminServerOptions {
  /** `host:port`; port 0 = any free one. */
  readonly listen: string
  readonly state: AdminState
  readonly metrics: MetricsText
  /** Beside health, metrics and configuration. Default: none. */
  readonly routes?: readonly AdminRoute[]
  /** Default: everybody. */
  readonly access?: AdminAccess
  /** Default: none. */
  readonly tls?: PlainTls | undefined
  /** Hears of answers that failed. Default: nobody. */
  readonly log?: Pick<Logger, 'error'>
}

/** Rejects with one clear line when the address is invalid or in use. */
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

// What every answer of the admin listener says to a browser: nothing but the files of this page may run or load, no page may frame it, and no
// other origin may read it. There are no CORS headers, so no other origin can.

/** Inline code, eval, and strings that become markup are refused by the browser. */
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
  // Not no-referrer: browsers then send no origin along with forms.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}
