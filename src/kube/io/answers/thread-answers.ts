// One thread's memory for responses to the gateway's own calls: the chunks received, and what is kept of them until a request is decided. Divided
// among the users on whose behalf the calls are made, and the clusters that the gateway follows for itself.

import { randomInt } from 'node:crypto'
import type { HeadMemory } from '../../../http2/header-frames.ts'
import type { Charge } from '../../../kit/api/stream.ts'
import { clusterCharge } from '../../../kit/core/shares/charge.ts'
import { LARGE_HEAD_BYTES } from '../../../kit/core/shares/open-heads.ts'
import { refuseShare } from '../../../kit/core/shares/refuse-share.ts'
import { SharedResource } from '../../../kit/core/shares/shared-resource.ts'
import type { AnswerMemory } from '../../core/answers/answer-reader.ts'
import { NoRoomError } from '../../core/answers/call-errors.ts'

/**
 * Limit per thread. Half of its reserve is a page (kube/core/answers/answer-limits.ts): while one source has everything, a second one can read a page, and
 * a third one an eighth of its share, which is 1 MiB. Further concurrent sources may get nothing until memory is released.
 */
const MAX_ANSWER_BYTES = 24 * 1024 * 1024

export const threadAnswers: SharedResource = new SharedResource('answer-bytes', MAX_ANSWER_BYTES)

/** Seed for countJson: unknown to the responding server. */
export const COUNT_SEED: number = randomInt(1, 2 ** 31)

/** Memory held by one call, or by one request with all its calls. */
export class AnswerBytes implements AnswerMemory {
  readonly #charge: Charge
  readonly #shared: SharedResource
  #held = 0

  constructor(charge: Charge, shared: SharedResource = threadAnswers) {
    this.#charge = charge
    this.#shared = shared
  }

  take(bytes: number): boolean {
    if (bytes === 0) return true
    if (this.#shared.take(this.#charge, bytes) !== 'taken') return false
    this.#held += bytes
    return true
  }

  give(bytes: number): void {
    if (bytes === 0) return
    this.#shared.give(this.#charge, bytes)
    this.#held -= bytes
  }

  end(): void {
    this.give(this.#held)
  }

  /** Why `take` failed. */
  full(): NoRoomError {
    const charge = this.#charge
    const shares = this.#shared.of(charge)
    const { message, retryAfterSeconds } = refuseShare(this.#shared.limit, shares, charge, Math.random())
    const belowShare = shares.heldBy(charge.source) < shares.shareOf(charge.source, charge.weight)
    return new NoRoomError(message, retryAfterSeconds, belowShare)
  }
}

// Memory of incomplete response heads: part of the thread's memory for responses, charged to the cluster whose endpoint sends them. Otherwise an
// endpoint that sends most of a large head on each of many connections would fill the memory unaccounted.

/** Memory of one connection, which has one head at a time. */
export class AnswerHead implements HeadMemory {
  readonly #memory: AnswerBytes
  #held = 0

  constructor(cluster: string) {
    this.#memory = new AnswerBytes(clusterCharge(cluster))
  }

  hold(bytes: number): { readonly message: string } | undefined {
    const more = (bytes > LARGE_HEAD_BYTES ? bytes : 0) - this.#held
    if (more > 0 && !this.#memory.take(more)) return this.#memory.full()
    if (more < 0) this.#memory.give(-more)
    this.#held += more
    return undefined
  }
}
