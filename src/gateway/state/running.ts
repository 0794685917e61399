// The running requests, in order to end those that would never end by themselves: watches and upgraded connections.

import type { CredentialOrigin } from '../api/identity-seen.ts'
import type { EndedSession } from '../api/token-session.ts'
import type { CompiledRevocation } from '../core/cluster/compiled-cluster.ts'
import { type Revocable, revokedPart } from '../core/cluster/revocation.ts'
import { hasEnded } from '../core/logout/token-session.ts'
import type { HeldGrant } from './access-grants.ts'

export interface RunningRequest {
  readonly cluster: string
  /** The cluster with members that it was sent to; '' = none. */
  readonly federation: string
  readonly endpoint: string
  /** The user who sent it. */
  readonly requester: (Revocable & { readonly origin?: CredentialOrigin | undefined }) | undefined
  /** Access grants that let it in. */
  readonly grants: readonly HeldGrant[]
  /** Watches, logs, upgrades: requests that outlive a drain. */
  readonly longRunning: boolean
  /** Clients resume it elsewhere from where it ended. */
  readonly isWatch: boolean
  /** When it was decided: monotonic. */
  readonly monotonicMs: number
  /** Its index, for RunningRequests alone; -1 = not running. */
  place: number
  /** Ends it cleanly where the protocol allows: a watch between two events; an upgraded connection is aborted. */
  finish(): void
  /** Aborts it now. */
  abort(): void
  /** Ends it now; cleanly if it is at a point where that is possible, as a watch between two events. */
  abortCleanly(): void
}

/**
 * Not a Set: adding and removing with every request makes it outgrow one hash table after another, each of which points
 * to the next, so one old table keeps all later requests alive until the next major garbage collection.
 */
export class RunningRequests {
  readonly #running: RunningRequest[] = []
  #onEmpty: (() => void) | undefined

  get size(): number {
    return this.#running.length
  }

  add(request: RunningRequest): void {
    request.place = this.#running.push(request) - 1
  }

  remove(request: RunningRequest): void {
    const { place } = request
    if (place < 0) return
    request.place = -1
    const last = this.#running.pop()
    if (last !== undefined && last !== request) {
      this.#running[place] = last
      last.place = place
    }
    if (this.#running.length === 0) this.#onEmpty?.()
  }

  longRunning(matches: (request: RunningRequest) => boolean = () => true): RunningRequest[] {
    return this.#running.filter((request) => request.longRunning && matches(request))
  }

  /**
   * Ends all requests to a cluster, or by it to one of its members, from users revoked there. A watch that ends cleanly makes client-go retry
   * and read the 401 that says why, where a reset would look like a broken gateway.
   */
  abortRevoked(cluster: string, revoked: CompiledRevocation): void {
    const affected = this.#running.filter(({ cluster: served, federation, requester }) => {
      if (served !== cluster && federation !== cluster) return false
      return requester !== undefined && revokedPart(revoked, requester) !== ''
    })
    for (const request of affected) request.abortCleanly()
  }

  /** Ends all requests with a token of the session that has ended. */
  abortEnded(ended: EndedSession): void {
    const affected = this.#running.filter(({ requester }) => {
      const session = requester?.origin?.session
      return session !== undefined && hasEnded(session, ended)
    })
    for (const request of affected) request.abortCleanly()
  }

  /** Ends all requests that were let in by an access grant that has ended. */
  abortGranted(): void {
    const affected = this.#running.filter(({ grants }) => grants.length > 0 && grants.some(({ ended }) => ended))
    for (const request of affected) request.abortCleanly()
  }

  /** Ends all requests that were sent to a cluster with members, and that it would not hand over to this member any more. */
  abortHandedOver(federation: string, handsOverTo: (member: string) => boolean): void {
    const affected = this.#running.filter((one) => one.federation === federation && !handsOverTo(one.cluster))
    for (const request of affected) request.abortCleanly()
  }

  abortAll(): void {
    for (const request of [...this.#running]) request.abort()
  }

  /** Resolves when no request is running. */
  empty(): Promise<void> {
    if (this.#running.length === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onEmpty = resolve
    })
  }
}
