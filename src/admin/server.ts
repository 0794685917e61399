// The admin listener: plain HTTP for the operator and for probes, loopback unless configured otherwise. Nothing of it is
// reachable through the proxy ports.

import { errorMessage } from '../api/validation/error-message.ts'
import { parseListenAddress } from '../core/cluster/listen-address.ts'
import { type PlainServer, startPlainServer } from '../io/listener/http-plain.ts'
import { type AdminState, adminResponse, type MetricsText } from './routes.ts'

export interface AdminServerOptions {
  /** `host:port`; port 0 = any free one. */
  readonly listen: string
  readonly state: AdminState
  readonly metrics: MetricsText
}

/** Rejects with one clear line when the address is invalid or in use. */
export async function startAdminServer(options: AdminServerOptions): Promise<PlainServer> {
  const address = parseListenAddress(options.listen)
  if ('error' in address) throw new Error(`admin listen address "${options.listen}" ${address.error}`)
  try {
    return await startPlainServer(address, (request) => adminResponse(request, options.state, options.metrics))
  } catch (error) {
    const why = errorMessage(error)
    throw new Error(`cannot listen on ${options.listen} for the admin server: ${why}`, { cause: error })
  }
}
