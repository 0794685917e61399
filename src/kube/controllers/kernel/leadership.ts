// Runs what only the leader runs, like controller-runtime's manager: one lease, and several tenants that start when it is won and stop
// when it is lost. A tenant that throws is logged and doesn't affect the others; at shutdown the lease is released after all have stopped.

import type { Logger } from '../../../kit/api/ports.ts'
import {
  candidateIdentity,
  type LeaderElection,
  type LeaseClient,
  type LeaseOptions,
  startLeaderElection,
} from '../../io/leader-lease.ts'

/** The time from winning the lease to losing it. */
export interface Term {
  /** Whether it is still held. Check before each write: a process that was suspended learns of its loss here. Once false, always false. */
  holds(): boolean
}

interface Stoppable {
  stop(): unknown
}

export interface Tenant {
  /** Whether its term is still held; false after it has left. */
  holds(): boolean
  /** Stops it for good. Resolves when nothing of any term is running any more; never rejects. */
  leave(): Promise<void>
}

/** The part of Leadership that controllers use. */
export type Leading = Pick<Leadership, 'isLeader' | 'run' | 'settle'>

export class Leadership {
  readonly #log: Logger
  readonly #election: LeaderElection
  /** In start order. */
  readonly #tenants = new Set<RunningTenant>()
  readonly #leaving = new Set<Promise<void>>()
  #term: CurrentTerm | undefined
  #stopped = false

  /** @param elect starts the election; it must call `onChange`, asynchronously, whenever the lease is won or lost */
  constructor(elect: (onChange: () => void) => LeaderElection, log: Logger) {
    this.#log = log
    this.#election = elect(() => this.#look())
    this.#look()
  }

  isLeader(): boolean {
    return this.#term?.holds() ?? false
  }

  /**
   * Starts something whenever this replica begins to lead (soon, if it already does), and stops it when it no longer does. The next term
   * doesn't
   * wait for what the last one started, which has to check its own term.
   * @param name for logs
   * @param start returns what to stop; undefined = nothing to stop
   */
  run(name: string, start: (term: Term) => Stoppable | undefined): Tenant {
    const tenant = new RunningTenant(name, start, this.#log)
    this.#tenants.add(tenant)
    const term = this.#term
    // The caller has the tenant by then.
    if (term !== undefined) queueMicrotask(() => this.#term === term && this.#tenants.has(tenant) && tenant.begin(term))
    return {
      holds: () => tenant.term?.holds() ?? false,
      leave: () => this.#leave(tenant),
    }
  }

  /**
   * For tenants with many parts, each started and stopped according to the wanted state: nothing unless the tenant `holds`.
   * @param update called when a term begins, and when it is over
   * @param ended resolves when the parts stopped by `update` are done
   */
  settle(name: string, update: () => void, ended: () => Promise<unknown>): Tenant {
    const stop = (): Promise<unknown> => {
      update()
      return ended()
    }
    return this.run(name, () => {
      update()
      return { stop }
    })
  }

  /** Resolves when the tenants have stopped and the lease is released. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#look()
    await Promise.all([...this.#leaving, ...[...this.#tenants].map((tenant) => tenant.ended())])
    await this.#election.stop()
  }

  #look(): void {
    const leads = !this.#stopped && this.#election.isLeader()
    if (this.#term !== undefined && !(leads && this.#term.holds())) this.#end(this.#term)
    if (leads && this.#term === undefined) this.#begin()
  }

  #begin(): void {
    const term = new CurrentTerm(this.#election, () => this.#look())
    this.#term = term
    for (const tenant of this.#tenants) tenant.begin(term)
  }

  #end(term: CurrentTerm): void {
    term.end()
    this.#term = undefined
    for (const tenant of [...this.#tenants].toReversed()) tenant.end()
  }

  #leave(tenant: RunningTenant): Promise<void> {
    this.#tenants.delete(tenant)
    tenant.end()
    const left = tenant.ended()
    this.#leaving.add(left)
    return left.finally(() => this.#leaving.delete(left))
  }
}

/** Leadership for a process that shares its objects with no other one. */
export function leadAlone(log: Logger): Leadership {
  return new Leadership(() => ({ isLeader: () => true, stop: () => Promise.resolve() }), log)
}

/** @param options `replica` is the name of this process; another candidate may have the same */
export function leadByLease(
  client: LeaseClient,
  { replica, onChange, ...lease }: Omit<LeaseOptions, 'identity'> & { readonly replica: string },
): Leadership {
  const elect = (settle: () => void): LeaderElection =>
    startLeaderElection(client, {
      ...lease,
      identity: candidateIdentity(replica),
      onChange: (leads) => {
        onChange?.(leads)
        settle()
      },
    })
  return new Leadership(elect, lease.log)
}

class CurrentTerm implements Term {
  readonly #election: LeaderElection
  readonly #onLapse: () => void
  #over = false

  constructor(election: LeaderElection, onLapse: () => void) {
    this.#election = election
    this.#onLapse = onLapse
  }

  holds(): boolean {
    if (!this.#over && !this.#election.isLeader()) {
      this.#over = true
      // Not inside the caller. The lease may be held again by then: that is another term.
      queueMicrotask(this.#onLapse)
    }
    return !this.#over
  }

  end(): void {
    this.#over = true
  }
}

class RunningTenant {
  term: Term | undefined
  #running: Stoppable | undefined
  readonly #name: string
  readonly #start: (term: Term) => Stoppable | undefined
  readonly #log: Logger
  /** Parts of earlier terms that are still stopping. */
  readonly #ending = new Set<Promise<void>>()

  constructor(name: string, start: (term: Term) => Stoppable | undefined, log: Logger) {
    this.#name = name
    this.#start = start
    this.#log = log
  }

  begin(term: Term): void {
    if (this.term === term) return
    this.term = term
    try {
      this.#running = this.#start(term)
    } catch (error) {
      this.#log.error('a tenant of the lease could not start', { tenant: this.#name, error })
    }
  }

  end(): void {
    const running = this.#running
    this.term = undefined
    this.#running = undefined
    if (running === undefined) return
    const ending = this.#stop(running)
    this.#ending.add(ending)
    void ending.finally(() => this.#ending.delete(ending))
  }

  async ended(): Promise<void> {
    await Promise.all(this.#ending)
  }

  async #stop(running: Stoppable): Promise<void> {
    try {
      await running.stop()
    } catch (error) {
      this.#log.error('a tenant of the lease could not be stopped', { tenant: this.#name, error })
    }
  }
}
