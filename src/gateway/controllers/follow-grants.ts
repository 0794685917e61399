// In a gateway thread: applies the access grants that the main thread tells of. A grant ends by the thread's own clock, too, and with it all requests that
// it let in.

import type { Clock } from '../../kit/api/ports.ts'
import type { Tickable } from '../../kit/io/world/coarse-ticker.ts'
import type { AccessGrantInForce } from '../core/identity/access-grants.ts'
import type { AccessGrants } from '../state/access-grants.ts'
import type { RunningRequests } from '../state/running.ts'

interface ThreadGrantsDeps {
  readonly grants: AccessGrants
  readonly running: RunningRequests
  readonly clock: Clock
}

export class ThreadGrants implements Tickable {
  readonly #deps: ThreadGrantsDeps

  constructor(deps: ThreadGrantsDeps) {
    this.#deps = deps
  }

  replace(all: readonly AccessGrantInForce[]): void {
    const { grants, running, clock } = this.#deps
    grants.replace(all, clock.now(), clock.monotonic())
    grants.endExpired(clock.now(), clock.monotonic())
    running.abortGranted()
  }

  /** Once a second. */
  tick(): void {
    const { grants, running, clock } = this.#deps
    if (!grants.isEmpty && grants.endExpired(clock.now(), clock.monotonic())) running.abortGranted()
  }
}
