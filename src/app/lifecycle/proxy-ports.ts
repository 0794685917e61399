// The ports of the gateway threads. They open last, once requests can be decided as the objects say: the configuration is in force, each
// endpoint has been probed, and what protects pods is known.

import type { Check } from '../../admin/routes.ts'
import { type OpenPorts, ownListeners } from '../wiring/own-listeners.ts'
import type { GatewayParts } from './build-parts.ts'

export class ProxyPorts {
  readonly name = 'ports'
  readonly #parts: Pick<GatewayParts, 'config' | 'pool' | 'guard' | 'probes'>
  readonly #known: () => Promise<unknown>
  readonly #others: () => Omit<OpenPorts, 'listen'>
  #probed = false
  /** In the order of `--listen`; empty until they are open. */
  open: readonly number[] = []

  /**
   * @param known resolves when what else has to be known is known, or it has taken too long
   * @param others the ports of the other listeners
   */
  constructor(
    parts: Pick<GatewayParts, 'config' | 'pool' | 'guard' | 'probes'>,
    known: () => Promise<unknown>,
    others: () => Omit<OpenPorts, 'listen'>,
  ) {
    this.#parts = parts
    this.#known = known
    this.#others = others
  }

  /** @throws {UserError} when one cannot be opened */
  async start(): Promise<void> {
    const { config, pool, probes } = this.#parts
    await Promise.all([probes.firstRound(), pool.online(), this.#known()])
    await pool.applied()
    this.#probed = true
    this.open = await pool.listen(config.listen)
    this.guardOwnListeners()
  }

  /** Keeps the gateway from connecting to itself. Call it again when further ports are known. */
  guardOwnListeners(): void {
    const { config, pool, guard } = this.#parts
    const addresses = ownListeners(config, { ...this.#others(), listen: this.open })
    guard.setOwnListeners(addresses)
    pool.ownListeners(addresses)
  }

  checks(): readonly Check[] {
    const listening = this.open.length > 0
    const serving = this.#parts.pool.slots.some(({ state }) => state === 'listening')
    return [
      { name: 'health-checks', ok: this.#probed, message: 'the first round of health checks has not finished' },
      { name: 'listeners', ok: listening, message: 'not open yet' },
      // A thread that died is replaced, after a pause when it dies again: while all are gone nobody accepts connections.
      { name: 'threads', ok: !listening || serving, message: 'no gateway thread is running' },
    ]
  }
}
