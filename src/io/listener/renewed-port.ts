// A port of the gateway's own API server or of the protection webhook: opened, its certificate renewed while it is open, and
// closed when what runs on it has ended.

import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../api/ports/ports.ts'
import type { RequestHandler } from '../../api/ports/stream.ts'
import type { ListenAddress } from '../../core/cluster/listen-address.ts'
import { cannotListen, requireFreePort } from '../world/free-port.ts'
import { listenControl } from './control-listener.ts'
import type { ServingPair } from './tls-contexts.ts'

/** How often the serving certificate is checked, to renew it in time. */
const RENEWAL_CHECK_MS = 12 * 60 * 60 * 1000
const CLOSE_LOOK_MS = 10

export interface RenewedPort {
  readonly port: number
  /** No new connections, what runs ends; what is still open after `withinMs` is closed. */
  close(withinMs: number): Promise<void>
}

/**
 * @param flag that names the address
 * @param serving the certificate as it is to be now; called again from time to time
 * @throws {UserError} when the port cannot be opened
 */
export async function openRenewedPort(
  listen: ListenAddress,
  flag: string,
  clientCAs: readonly string[],
  serving: () => ServingPair,
  handler: RequestHandler,
  log: Logger,
): Promise<RenewedPort> {
  await requireFreePort(listen, flag)
  const listener = await listenControl({ ...listen, serving: serving(), clientCAs, handler }).catch(
    (error: unknown) => {
      const message = error instanceof Error ? error.message : String(error)
      throw cannotListen(listen, message, String(Reflect.get(Object(error), 'code')), flag)
    },
  )
  const renewal = setInterval(() => {
    try {
      listener.setServing(serving())
    } catch (error) {
      log.error(`the certificate of ${flag} cannot be renewed`, { error })
    }
  }, RENEWAL_CHECK_MS)
  renewal.unref()
  return {
    port: listener.port,
    close: async (withinMs) => {
      clearInterval(renewal)
      listener.drain()
      for (let waitedMs = 0; waitedMs < withinMs && listener.connections() > 0; waitedMs += CLOSE_LOOK_MS) {
        await sleep(CLOSE_LOOK_MS)
      }
      listener.close()
    },
  }
}

/** Names and addresses for the certificate of such a port: `hosts`, the address it listens on, and those of this machine. */
export function hostsOfPort(hosts: readonly string[], { host }: ListenAddress): readonly string[] {
  const own = host === '0.0.0.0' || host === '::' ? [] : [host]
  const machine = /^[A-Za-z0-9.-]+$/.test(hostname()) ? [hostname()] : []
  return [...new Set([...hosts, ...own, 'localhost', '127.0.0.1', '::1', ...machine])]
}
