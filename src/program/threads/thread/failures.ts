// A thread's part in counting failures by address: reports failures to the main thread, once per turn of the event loop, and knows which addresses
// are blocked.

import type { FailureGate } from '../../../gateway/request/exchange/gateway.ts'
import { blockedSources } from '../../../gateway/state/blocked-sources.ts'
import { KnownTokens } from '../../../gateway/state/known-tokens.ts'
import type { Block } from '../../../process/failures/address-failures.ts'
import type { FailedSource, FromThread } from '../messages.ts'

/** Addresses per message; failures of further ones in a turn of the event loop are not counted. */
const MAX_SOURCES = 1024

export class ThreadFailures implements FailureGate {
  readonly #post: (message: FromThread) => void
  readonly #knownTokens: KnownTokens
  readonly #nowMs: () => number
  readonly #blocked = blockedSources()
  readonly #failed = new Map<string, number>()
  #scheduled = false

  constructor(post: (message: FromThread) => void, memory: Int32Array<SharedArrayBuffer>, nowMs: () => number) {
    this.#post = post
    this.#knownTokens = new KnownTokens(memory)
    this.#nowMs = nowMs
  }

  failed(source: string): void {
    const count = this.#failed.get(source)
    if (count === undefined && this.#failed.size >= MAX_SOURCES) return
    this.#failed.set(source, (count ?? 0) + 1)
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#tell())
  }

  blockedMs(source: string, nowMs: number): number {
    return this.#blocked.leftMs(source, nowMs)
  }

  isBlocked(source: string): boolean {
    return this.#blocked.size > 0 && this.#blocked.leftMs(source, this.#nowMs()) > 0
  }

  isKnownToken(hash: string): boolean {
    return this.#knownTokens.has(hash)
  }

  acceptedToken(hash: string): void {
    this.#knownTokens.add(hash)
  }

  /** The main thread has blocked them. */
  block(blocks: readonly Block[]): void {
    for (const { source, forMs } of blocks) this.#blocked.punish(source, forMs, this.#nowMs())
  }

  #tell(): void {
    this.#scheduled = false
    const failures: FailedSource[] = Array.from(this.#failed, ([source, count]) => ({ source, count }))
    this.#failed.clear()
    this.#post({ type: 'failures', failures })
  }
}
