// The admin listener: HTTP for the operator and for probes, loopback unless configured otherwise. Nothing of it is reachable through the
// proxy ports.

import type { Logger } from '../api/ports/ports.ts'
import { errorMessage } from '../api/validation/error-message.ts'
import { parseListenAddress } from '../core/cluster/listen-address.ts'
import {
  type AnyResponse,
  type PlainRequest,
  type PlainServer,
  type PlainTls,
  startPlainServer,
} from '../io/listener/http-plain.ts'
import { PAGE_HEADERS } from './page-headers.ts'
import { type AdminAccess, type AdminRoute, answerRoute, OPEN_ADMIN } from './route.ts'
import { type AdminState, configRoute, healthRoutes, type MetricsText, metricsRoute } from './routes.ts'

export interface AdminServerOptions {
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
