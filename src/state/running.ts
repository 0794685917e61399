// The requests that are running, so that those which would never end by themselves can be ended: watches and upgraded connections.

import type { CompiledRevocation } from '../core/cluster/compiled-cluster.ts'
import { type Revocable, revokedPart } from '../core/cluster/revocation.ts'

export interface RunningRequest {
  readonly cluster: string
  readonly endpoint: string
  /** Who sent it. */
  readonly requester: Revocable | undefined
  /** Watches, logs, upgrades: what outlives a drain. */
  readonly longRunning: boolean
  /** Where it stands among those that are running, for RunningRequests alone; -1 = it is not among them. */
  place: number
  /** Ends it as its protocol ends cleanly: a watch between two events; an upgraded connection is cut. */
  finish(): void
  /** Ends it now. */
  abort(): void
  /** Ends it now, and as its protocol ends cleanly where it stands so at this moment: a watch between two events. */
  abortCleanly(): void
}

/**
 * Not a Set: what comes and goes with every request makes it outgrow one hash table after the other, and each of them points
 * to the next, so that one old table keeps all later requests alive until the next major garbage collection.
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
   * What somebody sent to a cluster who is revoked there: ends now, whatever it is. A watch that ends cleanly makes client-go ask again,
   * and read the 401 that says why, where a reset would look like a broken gateway.
   */
  abortRevoked(cluster: string, revoked: CompiledRevocation): void {
    const theirs = this.#running.filter((request) => {
      return (
        request.cluster === cluster && request.requester !== undefined && revokedPart(revoked, request.requester) !== ''
      )
    })
    for (const request of theirs) request.abortCleanly()
  }

  abortAll(): void {
    for (const request of [...this.#running]) request.abort()
  }

  /** Resolves when nothing runs. */
  empty(): Promise<void> {
    if (this.#running.length === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onEmpty = resolve
    })
  }
}
