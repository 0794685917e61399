// The life of the process. `leaving` lasts from SIGTERM for --shutdown-delay; then it drains, and finally all components stop.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../kit/api/ports.ts'
import type { Check } from '../../process/api/check.ts'
import type { Components } from '../../process/components/component.ts'
import type { Config } from '../../process/config/config.ts'
import type { ThreadPool } from '../threads/pool/pool.ts'

export class Lifecycle {
  readonly #config: Pick<Config, 'shutdownDelayMs' | 'drainTimeoutMs'>
  readonly #components: Components
  readonly #pool: ThreadPool
  readonly #log: Logger
  readonly #outlets: AsyncDisposableStack
  #state: 'running' | 'leaving' | 'draining' | 'stopped' = 'running'
  #stopping: Promise<void> | undefined
  readonly #drainNow = new AbortController()

  /** @param outlets closed after everything else */
  constructor(config: Config, components: Components, pool: ThreadPool, log: Logger, outlets: AsyncDisposableStack) {
    this.#config = config
    this.#components = components
    this.#pool = pool
    this.#log = log
    this.#outlets = outlets
  }

  /** A failed start stops what has started; the outlets stay open, so that the caller can log. @throws {UserError} */
  async start(): Promise<void> {
    try {
      await this.#components.start()
    } catch (error) {
      await this.#components.stop().catch(() => undefined)
      throw error
    }
  }

  /** Begins the shutdown; each further call skips to the next step. Rejects with the first error of a component. */
  stop(): Promise<void> {
    if (this.#stopping === undefined) this.#stopping = this.#end()
    else if (this.#state === 'leaving') this.#drainNow.abort()
    else this.#pool.abort()
    return this.#stopping
  }

  get draining(): boolean {
    return this.#state === 'draining' || this.#state === 'stopped'
  }

  /** Fails as soon as the shutdown begins. */
  checks(): readonly Check[] {
    return [{ name: 'shutdown', ok: this.#stopping === undefined, message: 'shutting down' }]
  }

  async #end(): Promise<void> {
    if (this.#config.shutdownDelayMs > 0) await this.#delay(this.#config.shutdownDelayMs)
    await this.#drain(this.#config.drainTimeoutMs)
    try {
      await this.#components.stop()
    } finally {
      this.#state = 'stopped'
      this.#log.info('stopped')
      await this.#outlets.disposeAsync()
    }
  }

  /** Lets clients that poll readyz notice while the ports still accept connections. */
  async #delay(delayMs: number): Promise<void> {
    this.#state = 'leaving'
    this.#pool.leave()
    this.#log.info('shutting down: readyz fails, requests are still served', { delayMs })
    await sleep(delayMs, undefined, { signal: this.#drainNow.signal }).catch(() => undefined)
  }

  async #drain(timeoutMs: number): Promise<void> {
    this.#state = 'draining'
    this.#log.info('draining', { timeoutMs })
    const deadline = setTimeout(() => this.#pool.abort(), timeoutMs)
    await this.#pool.drain()
    clearTimeout(deadline)
  }
}
