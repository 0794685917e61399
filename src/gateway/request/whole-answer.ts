// An answer that is changed before the client gets it, because a member gave it whose names are others here: collected whole, charged to the sender.

import type { HeaderList } from '../../kit/api/stream.ts'
import { BodyPieces } from '../../kube/core/answers/body-pieces.ts'
import { headerValue } from '../core/request/hop-headers.ts'
import type { AnswerChange } from './exchange/answer-change.ts'
import type { Exchange } from './exchange/exchange.ts'

export class WholeAnswer {
  /** As upstream sent it. */
  readonly head: HeaderList
  readonly #exchange: Exchange
  readonly #pieces = new BodyPieces()
  #bytes = 0

  constructor(exchange: Exchange, head: HeaderList) {
    this.#exchange = exchange
    this.head = head
  }

  /** @returns whether it is collected, which depends on its length and on what waits for the sender */
  add(chunk: Buffer, maxBytes: number): 'added' | 'too-long' | 'no-memory' {
    const bytes = this.#bytes + chunk.length
    if (bytes > maxBytes) return 'too-long'
    if (!this.#exchange.takeMemory(chunk.length)) return 'no-memory'
    this.#bytes = bytes
    this.#pieces.add(chunk)
    return 'added'
  }

  take(): Buffer {
    return Buffer.concat(this.#pieces.take())
  }

  discard(): void {
    this.#pieces.clear()
    this.#exchange.giveMemory(this.#bytes)
    this.#bytes = 0
  }
}

/** @returns undefined = it cannot be read */
export function changedAnswer(change: AnswerChange, head: HeaderList, body: Buffer): Buffer | undefined {
  // Nothing else was asked for.
  if ((headerValue(head, 'content-encoding') ?? 'identity') !== 'identity') return undefined
  return change.change(Number(head[1]), headerValue(head, 'content-type') ?? '', body)
}

/** `head` for a body of another length. */
export function withLength(head: HeaderList, bytes: number): HeaderList {
  const changed: HeaderList = []
  for (let i = 0; i + 1 < head.length; i += 2) {
    const name = head[i] ?? ''
    if (name !== 'content-length') changed.push(name, head[i + 1] ?? '')
  }
  changed.push('content-length', String(bytes))
  return changed
}
