// What members have allowed lately: while one does not answer, its last answer counts. What is shown then was allowed by the member itself; a right that it
// takes away meanwhile is gone when it is back. All threads know of it, since a client that comes again may come to another one.

import { LRUCache } from 'lru-cache'

/** How long an answer counts while the member does not give another one. */
export const AWAY_RIGHTS_MS = 3_600_000
/** After how long other threads are told again. */
const TELL_AGAIN_MS = 600_000
/** Characters of the questions that a thread remembers: what is made up is denied, and not remembered. */
const MOST_REMEMBERED = 8 * 1024 * 1024

/** A member has answered a question, which was allowed before or is now. */
export interface RightNews {
  readonly question: string
  readonly isAllowed: boolean
}

interface Remembered {
  /** When it was allowed, and other threads were told: monotonic. */
  readonly atMs: number
  readonly toldMs: number
}

export class KnownRights {
  readonly #allowed = new LRUCache<string, Remembered>({
    maxSize: MOST_REMEMBERED,
    sizeCalculation: (_, question) => question.length,
  })
  readonly #tell: (news: RightNews) => void

  /** @param tell the other threads */
  constructor(tell: (news: RightNews) => void) {
    this.#tell = tell
  }

  allowed(question: string, nowMs: number): void {
    const known = this.#allowed.get(question)
    const isTold = known !== undefined && nowMs - known.toldMs < TELL_AGAIN_MS
    this.#allowed.set(question, { atMs: nowMs, toldMs: isTold ? known.toldMs : nowMs })
    if (!isTold) this.#tell({ question, isAllowed: true })
  }

  denied(question: string): void {
    if (this.#allowed.delete(question)) this.#tell({ question, isAllowed: false })
  }

  /** Another thread, or this one, has told. */
  onNews({ question, isAllowed }: RightNews, nowMs: number): void {
    if (isAllowed) this.#allowed.set(question, { atMs: nowMs, toldMs: nowMs })
    else this.#allowed.delete(question)
  }

  /** Whether the last answer, which is not too old, was that it is allowed. */
  wasAllowed(question: string, nowMs: number): boolean {
    const known = this.#allowed.get(question)
    return known !== undefined && nowMs - known.atMs <= AWAY_RIGHTS_MS
  }
}
