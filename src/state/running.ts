// The requests that are running, so that those which would never end by themselves can be ended: watches and upgraded connections.

export interface RunningRequest {
  readonly cluster: string
  readonly endpoint: string
  /** Watches, logs, upgrades: what outlives a drain. */
  readonly longRunning: boolean
  /** Ends it as its protocol ends cleanly: a watch between two events; an upgraded connection is cut. */
  finish(): void
  /** Ends it now. */
  cut(): void
}

export class RunningRequests {
  readonly #running = new Set<RunningRequest>()
  #onEmpty: (() => void) | undefined

  get size(): number {
    return this.#running.size
  }

  add(request: RunningRequest): void {
    this.#running.add(request)
  }

  remove(request: RunningRequest): void {
    this.#running.delete(request)
    if (this.#running.size === 0) this.#onEmpty?.()
  }

  longRunning(matches: (request: RunningRequest) => boolean = () => true): RunningRequest[] {
    return [...this.#running].filter((request) => request.longRunning && matches(request))
  }

  cutAll(): void {
    for (const request of [...this.#running]) request.cut()
  }

  /** Resolves when nothing runs. */
  empty(): Promise<void> {
    if (this.#running.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onEmpty = resolve
    })
  }
}
