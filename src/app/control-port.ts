// The control port: the embedded API server, or the webhook for CRDs. Its certificate is renewed while it is open.

import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../api/ports/ports.ts'
import type { RequestHandler } from '../api/ports/stream.ts'
import { formatListenAddress, type ListenAddress } from '../core/cluster/listen-address.ts'
import { type ControlListener, listenControl } from '../io/listener/control-listener.ts'
import { controlPaths } from '../io/listener/control-paths.ts'
import { type ControlPki, ensureControlPki } from '../io/pki/control-pki.ts'
import { cannotListen, requireFreePort } from '../io/world/free-port.ts'
import type { Config } from './config/config.ts'

/** How often the serving certificate is checked, to renew it in time. */
const RENEWAL_CHECK_MS = 12 * 60 * 60 * 1000
/** Watches were ended before: only responses are still under way. */
const CLOSE_WITHIN_MS = 500
const CLOSE_LOOK_MS = 10

export class ControlPort {
  readonly #config: Config
  readonly #log: Logger
  readonly #dir: string
  pki: ControlPki
  #listener: ControlListener | undefined
  #renewal: NodeJS.Timeout | undefined

  constructor(config: Config, log: Logger) {
    this.#config = config
    this.#log = log
    this.#dir = controlPaths(config.dataDir).pki
    this.pki = this.#ensurePki(config.controlListen.port)
  }

  get port(): number {
    return this.#listener?.port ?? 0
  }

  /** The address for commands on this machine; every certificate of ours has these names. */
  get localUrl(): string {
    const { host } = this.#config.controlListen
    const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
    return `https://${formatListenAddress({ host: local, port: this.port })}`
  }

  async open(handler: RequestHandler): Promise<void> {
    const address = this.#config.controlListen
    await requireFreePort(address, '--control-listen')
    const { servingCert: cert, servingKey: key, caPem } = this.pki
    try {
      this.#listener = await listenControl({ ...address, serving: { cert, key }, clientCAs: [caPem], handler })
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      throw cannotListen(address, message, String(Reflect.get(Object(error), 'code')), '--control-listen')
    }
    this.pki = this.#ensurePki(this.port)
    this.#renewal = setInterval(() => this.#renew(), RENEWAL_CHECK_MS)
    this.#renewal.unref()
  }

  #renew(): void {
    try {
      this.pki = this.#ensurePki(this.port)
      this.#listener?.setServing({ cert: this.pki.servingCert, key: this.pki.servingKey })
    } catch (error) {
      this.#log.error('the certificate of the control port cannot be renewed', { error })
    }
  }

  #ensurePki(port: number): ControlPki {
    const { controlHosts, controlListen } = this.#config
    const own = isWildcard(controlListen) ? [] : [controlListen.host]
    const machine = /^[A-Za-z0-9.-]+$/.test(hostname()) ? [hostname()] : []
    const hosts = [...new Set([...controlHosts, ...own, 'localhost', '127.0.0.1', '::1', ...machine])]
    const server = `https://${formatListenAddress({ host: hosts[0] ?? 'localhost', port })}`
    return ensureControlPki(this.#dir, hosts, { server })
  }

  /** No new connections; running requests finish, and what is still open after a moment is closed. */
  async close(): Promise<void> {
    clearInterval(this.#renewal)
    const listener = this.#listener
    if (listener === undefined) return
    listener.drain()
    for (let waitedMs = 0; waitedMs < CLOSE_WITHIN_MS && listener.connections() > 0; waitedMs += CLOSE_LOOK_MS) {
      await sleep(CLOSE_LOOK_MS)
    }
    listener.close()
  }
}

function isWildcard({ host }: ListenAddress): boolean {
  return host === '0.0.0.0' || host === '::'
}
