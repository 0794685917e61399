// Addresses that get nothing without a valid credential, and until when. Bounded: the one that was blocked first is forgotten first.

const MAX_BLOCKED = 16_384

export class BlockedSources {
  /** Monotonic milliseconds. */
  readonly #untilMs = new Map<string, number>()

  get size(): number {
    return this.#untilMs.size
  }

  block(source: string, forMs: number, nowMs: number): void {
    this.#untilMs.delete(source)
    this.#untilMs.set(source, nowMs + forMs)
    if (this.#untilMs.size <= MAX_BLOCKED) return
    for (const oldest of this.#untilMs.keys()) {
      this.#untilMs.delete(oldest)
      return
    }
  }

  /** All that are blocked, and for how much longer. */
  *all(nowMs: number): Iterable<{ readonly source: string; readonly forMs: number }> {
    for (const [source, untilMs] of this.#untilMs) if (untilMs > nowMs) yield { source, forMs: untilMs - nowMs }
  }

  /** For how much longer the source is blocked; 0 = it is not. */
  blockedMs(source: string, nowMs: number): number {
    if (this.#untilMs.size === 0) return 0
    const untilMs = this.#untilMs.get(source)
    if (untilMs === undefined) return 0
    if (untilMs > nowMs) return untilMs - nowMs
    this.#untilMs.delete(source)
    return 0
  }
}
