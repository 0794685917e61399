// The memory of answers' heads that are not complete: that of all other answers of the thread (io/answers/thread-answers.ts), charged to the cluster
// whose endpoint sends them. One that sends most of a large head on each of many connections would otherwise fill the memory unseen.

import { clusterCharge } from '../../core/shares/charge.ts'
import { LARGE_HEAD_BYTES } from '../../core/shares/open-heads.ts'
import type { HeadMemory } from '../../http2/header-frames.ts'
import { AnswerBytes } from '../answers/thread-answers.ts'

/** That of one connection, which has one head at a time. */
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
