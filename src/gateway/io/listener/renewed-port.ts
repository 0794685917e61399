// A port of the gateway's own API server or of the protection webhook: opens it, renews its certificate and client CA while it is open, and closes it
// when its requests have ended.

import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../../kit/api/ports.ts'
import type { RequestHandler } from '../../../kit/api/stream.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import type { ListenAddress } from '../../../kit/core/listen-address.ts'
import { followFiles } from '../../../kit/io/world/follow-files.ts'
import { cannotListen, requireFreePort } from '../../../kit/io/world/free-port.ts'
import { takeInherited } from '../../../kit/io/world/inherited-sockets.ts'
import type { PortAdmission } from './connections.ts'
import { listenControl } from './control-listener.ts'
import type { ServingPair } from './tls-contexts.ts'
import type { TlsPolicy } from './tls-policy.ts'

/** How often the serving certificate is checked for renewal. */
const RENEWAL_CHECK_MS = 12 * 60 * 60 * 1000
const CLOSE_LOOK_MS = 10

/** The certificate a port presents, and the CA it verifies clients with. */
interface PortCertificates {
  readonly serving: ServingPair
  /** PEM; a bundle if CAs overlap. */
  readonly clientCA: string
}

export interface RenewedPort {
  readonly port: number
  /** Why the files' current contents are not in force; '' = they are. */
  readonly problem: string
  /** Accepts no new connections and lets requests finish; whatever is still open after `withinMs` is closed. */
  close(withinMs: number): Promise<void>
}

interface RenewedPortOptions {
  readonly listen: ListenAddress
  /** The flag that sets the address. */
  readonly flag: string
  readonly tls: TlsPolicy
  /** The desired certificates; called again periodically, and when one of `files` has changed. May throw. */
  certificates(): PortCertificates
  /** The latest ones are in force for new connections. */
  onInForce(): void
  /** The files that `certificates` reads. */
  readonly files: readonly string[]
  readonly handler: RequestHandler
  /** Like the listener's. */
  readonly admission?: PortAdmission | undefined
  readonly log: Logger
}

/** @throws {UserError} if the port cannot be opened */
export async function openRenewedPort(options: RenewedPortOptions): Promise<RenewedPort> {
  const { listen, flag, tls, handler, admission, log, files } = options
  await requireFreePort(listen, flag)
  const fds = takeInherited(listen, flag)
  const { host, port } = listen
  let inForce = options.certificates()
  const listening = listenControl({ host, port, fds, ...inForce, tls, handler, ...(admission && { admission }) })
  const listener = await listening.catch((error: unknown) => {
    const message = error instanceof Error ? error.message : String(error)
    throw cannotListen(listen, message, String(Reflect.get(Object(error), 'code')), flag)
  })
  options.onInForce()
  let problem = ''
  const renew = (): void => {
    try {
      const next = options.certificates()
      const changed = !isSame(next, inForce)
      if (changed) listener.setCertificates(next.serving, next.clientCA)
      inForce = next
      options.onInForce()
      if (changed || problem !== '') log.info(`the certificates of ${flag} are in force`)
      problem = ''
    } catch (error) {
      const fix = error instanceof UserError ? `; ${error.fix}` : ''
      const why = `${error instanceof Error ? error.message : String(error)}${fix}`
      if (why !== problem) {
        log.error(`the certificates of ${flag} cannot be replaced; the previous ones stay in force`, { error: why })
      }
      problem = why
    }
  }
  const renewal = setInterval(renew, RENEWAL_CHECK_MS).unref()
  const followed = followFiles(files, renew)
  return {
    port: listener.port,
    get problem() {
      return problem
    },
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

function isSame(a: PortCertificates, b: PortCertificates): boolean {
  return a.clientCA === b.clientCA && a.serving.cert === b.serving.cert && a.serving.key === b.serving.key
}

/** Names and addresses for such a port's certificate: `hosts`, the address it listens on, and this machine's. */
export function hostsOfPort(hosts: readonly string[], { host }: ListenAddress): readonly string[] {
  const own = host === '' || host === '0.0.0.0' || host === '::' ? [] : [host]
  const machine = /^[A-Za-z0-9.-]+$/.test(hostname()) ? [hostname()] : []
  return [...new Set([...hosts, ...own, 'localhost', '127.0.0.1', '::1', ...machine])]
}
