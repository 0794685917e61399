// Failed credentials and handshakes, counted in the main thread per source (an address, or an IPv6 /64 network): some are free per minute, then the
// source is blocked, each time for twice as long. Shared by replicas if there is a Redis.

import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { blockedSources } from '../../gateway/state/blocked-sources.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { type PenaltyScale, penaltyMs } from '../../kit/core/penalties/penalties.ts'

/** The used part of rate-limiter-flexible's limiters. */
type FailureCounter = Pick<RateLimiterMemory, 'consume' | 'get' | 'set'>

export interface FailureOptions {
  /** Failures per minute without consequences; 0 = nothing is counted. */
  readonly free: number
  readonly longestBlockMs: number
  /** Counters shared by replicas; must also work without Redis. Default: local to this process. */
  shared?(name: string, points: number, durationSeconds: number): () => FailureCounter
  nowMs(): number
  /** A failure could not be counted. Default: ignored. */
  onError?(message: string): void
}

export interface Block {
  readonly source: string
  /** From now on. */
  readonly forMs: number
}

const MINUTE_S = 60
/** After this time without a failure, earlier failures are forgotten. */
export const QUIET_MS: number = 600_000
/** Concurrently counted addresses; failures of further ones have no consequences, and cost no memory. */
export const MAX_COUNTED: number = 16_384
/** Addresses whose blocks are remembered, each with a key in Redis; other addresses are blocked as briefly as the first time. */
export const MAX_KNOWN: number = 16_384
const FIRST_BLOCK_MS = 1_000

export class AddressFailures {
  readonly #options: FailureOptions
  readonly #scale: PenaltyScale
  readonly #window: () => FailureCounter
  readonly #strikes: () => FailureCounter
  readonly #blocked = blockedSources()
  /** Failures waiting for the result of earlier ones of the same source. */
  readonly #underway = new Map<string, { count: number; ended: Promise<void> }>()
  readonly #counted = new Set<string>()
  /** Addresses whose blocks this process remembers, and until when; latest last. */
  readonly #known = new Map<string, number>()
  readonly #listeners: ((blocks: readonly Block[]) => void)[] = []
  #renewedMs = 0

  constructor(options: FailureOptions) {
    this.#options = options
    const { free, longestBlockMs, shared = inMemory } = options
    this.#scale = { firstMs: FIRST_BLOCK_MS, growth: 2, longestMs: longestBlockMs }
    this.#window = shared('failures', Math.max(1, free), MINUTE_S)
    this.#strikes = shared('blocks', Number.MAX_SAFE_INTEGER, QUIET_MS / 1000)
  }

  /** @param listener called with every block */
  onBlocked(listener: (blocks: readonly Block[]) => void): void {
    this.#listeners.push(listener)
  }

  /** How long the source is still blocked; 0 = it is not. */
  blockedMs(source: string): number {
    return this.#blocked.leftMs(source, this.#options.nowMs())
  }

  /** All current blocks. */
  blocks(): readonly Block[] {
    return [...this.#blocked.all(this.#options.nowMs())]
  }

  /** This source has failed this many times. Resolves when it is counted; never rejects. */
  async failed(source: string, count = 1): Promise<void> {
    if (this.#options.free === 0 || !this.#counts(source)) return
    const underway = this.#underway.get(source)
    if (underway !== undefined) {
      underway.count += count
      await underway.ended
      return
    }
    const entry = { count, ended: Promise.resolve() }
    this.#underway.set(source, entry)
    entry.ended = this.#count(source, entry)
    await entry.ended
  }

  async #count(source: string, entry: { count: number }): Promise<void> {
    try {
      while (entry.count > 0) {
        const { count } = entry
        entry.count = 0
        // Requests in flight when it was blocked do not extend the block.
        if (this.blockedMs(source) === 0) await this.#add(source, count)
      }
    } catch (error) {
      this.#options.onError?.(errorMessage(error))
    } finally {
      this.#underway.delete(source)
    }
  }

  async #add(source: string, count: number): Promise<void> {
    const known = await this.#strikes().get(source)
    // Kept for the block and the quiet time after it: if another replica has blocked the source, this is what is left of the block.
    const leftMs = (known?.msBeforeNext ?? 0) - QUIET_MS
    if (leftMs > 0) {
      this.#block(source, leftMs)
      return
    }
    const before = known?.consumedPoints ?? 0
    if (before === 0 && (await isFree(this.#window(), source, count))) return
    const forMs = penaltyMs(this.#scale, before)
    if (this.#remembers(source, QUIET_MS + forMs)) {
      await this.#strikes().set(source, before + 1, (QUIET_MS + forMs) / 1000)
    }
    this.#block(source, forMs)
  }

  #block(source: string, forMs: number): void {
    this.#blocked.punish(source, forMs, this.#options.nowMs())
    for (const listener of this.#listeners) listener([{ source, forMs }])
  }

  /** Whether there is room to remember it. */
  #remembers(source: string, forMs: number): boolean {
    const nowMs = this.#options.nowMs()
    this.#known.delete(source)
    if (this.#known.size >= MAX_KNOWN) {
      for (const [oldest, untilMs] of this.#known) {
        if (untilMs > nowMs) break
        this.#known.delete(oldest)
      }
    }
    if (this.#known.size >= MAX_KNOWN) return false
    this.#known.set(source, nowMs + forMs)
    return true
  }

  /** Whether there is room to count it. Addresses are dropped each minute, about when their counters end. */
  #counts(source: string): boolean {
    const nowMs = this.#options.nowMs()
    if (nowMs - this.#renewedMs >= MINUTE_S * 1000) {
      this.#counted.clear()
      this.#renewedMs = nowMs
    }
    if (this.#counted.size >= MAX_COUNTED && !this.#counted.has(source)) return false
    this.#counted.add(source)
    return true
  }
}

async function isFree(counter: FailureCounter, source: string, count: number): Promise<boolean> {
  try {
    await counter.consume(source, count)
    return true
  } catch (error) {
    // It rejects with a result if nothing is left.
    if (error instanceof RateLimiterRes) return false
    throw error
  }
}

function inMemory(name: string, points: number, duration: number): () => FailureCounter {
  const counter = new RateLimiterMemory({ keyPrefix: name, points, duration })
  return () => counter
}
