// An election that a test decides, and the Leadership on it.

import { Leadership } from '../../src/kube/controllers/kernel/leadership.ts'
import type { LeaderElection } from '../../src/kube/io/leader-lease.ts'

export class Election {
  readonly leadership: Leadership
  readonly #released: () => void
  #leads: boolean
  #onChange: () => void = () => undefined

  constructor(leads = true, released: () => void = () => undefined) {
    this.#leads = leads
    this.#released = released
    const elect = (onChange: () => void): LeaderElection => {
      this.#onChange = onChange
      return { isLeader: () => this.#leads, stop: async () => this.#released() }
    }
    const fail = (message: string, fields?: object): void => {
      throw new Error(`${message} ${JSON.stringify(fields)}`)
    }
    this.leadership = new Leadership(elect, { debug() {}, info() {}, warn: fail, error: fail })
  }

  get leads(): boolean {
    return this.#leads
  }

  /** The lease is won or lost, and the election says so. */
  set leads(leads: boolean) {
    this.#leads = leads
    this.#onChange()
  }

  /** As when the clock says it first: no listener has been told yet. */
  lapse(): void {
    this.#leads = false
  }
}
