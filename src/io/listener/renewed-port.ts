// A port of the gateway's own API server or of the protection webhook: opened, its certificate renewed while it is open, and
// closed when what runs on it has ended.

import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../api/ports/ports.ts'
import type { RequestHandler } from '../../api/ports/stream.ts'
import type { ListenAddress } from '../../core/cluster/listen-address.ts'
import { followFiles } from '../world/follow-files.ts'
import { cannotListen, requireFreePort } from '../world/free-port.ts'
import { takeInherited } from '../world/inherited-sockets.ts'
import { listenControl } from './control-listener.ts'
import type { ServingPair } from './tls-contexts.ts'
import type { TlsPolicy } from './tls-policy.ts'

/** How often the serving certificate is checked, to renew it in time. */
const RENEWAL_CHECK_MS = 12 * 60 * 60 * 1000
const CLOSE_LOOK_MS = 10

export interface RenewedPort {
  readonly port: number
  /** No new connections, what runs ends; what is still open after `withinMs` is closed. */
  close(withinMs: number): Promise<void>
}

export interface RenewedPortOptions {
  readonly listen: ListenAddress
  /** That names the address. */
  readonly flag: string
  readonly clientCAs: readonly string[]
  readonly tls: TlsPolicy
  /** The certificate as it is to be now; called again from time to time, and when one of `files` has changed. */
  serving(): ServingPair
  /** What `serving` reads. While one is missing it is not called: it would make a new one in its place. */
  readonly files: readonly string[]
  readonly handler: RequestHandler
  readonly log: Logger
}

/** @throws {UserError} when the port cannot be opened */
export async function openRenewedPort(options: RenewedPortOptions): Promise<RenewedPort> {
  const { listen, flag, clientCAs, tls, handler, log, files } = options
  await requireFreePort(listen, flag)
  const fds = takeInherited(listen, flag)
  const { host, port } = listen
  const listener = await listenControl({ host, port, fds, serving: options.serving(), clientCAs, tls, handler }).catch(
    (error: unknown) => {
      const message = error instanceof Error ? error.message : String(error)
      throw cannotListen(listen, message, String(Reflect.get(Object(error), 'code')), flag)
    },
  )
  const renew = (): void => {
    try {
      listener.setServing(options.serving())
    } catch (error) {
      log.error(`the certificate of ${flag} cannot be replaced; the one before stays in force`, { error })
    }
  }
  const renewal = setInterval(renew, RENEWAL_CHECK_MS).unref()
  const followed = followFiles(files, () => files.every((file) => existsSync(file)) && renew())
  return {
    port: listener.port,
    close: async (withinMs) => {
      clearInterval(renewal)
      followed.stop()
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
  const own = host === '' || host === '0.0.0.0' || host === '::' ? [] : [host]
  const machine = /^[A-Za-z0-9.-]+$/.test(hostname()) ? [hostname()] : []
  return [...new Set([...hosts, ...own, 'localhost', '127.0.0.1', '::1', ...machine])]
}
