// The events of a watch in Protobuf: each has its length in front, four bytes (apimachinery/pkg/util/framer).

import { OBJECT } from '../core/answers/answer-limits.ts'
import { type AnswerMemory, AnswerReader } from '../core/answers/answer-reader.ts'
import { BadWatchError, keepPart } from './watch-lines.ts'

const LENGTH_BYTES = 4

export class EventFrames {
  readonly #arrived: AnswerReader
  /** Length of the event that arrives; undefined = the length itself arrives. */
  #length: number | undefined

  /** @param memory of the current event, which `drop` must release at the end */
  constructor(memory: AnswerMemory) {
    this.#arrived = new AnswerReader(OBJECT.bytes, memory)
  }

  /** The events completed by `chunk`, without their lengths. @throws {BadWatchError} if one is too large */
  push(chunk: Buffer): Buffer[] {
    const events: Buffer[] = []
    let at = 0
    while (at < chunk.length) {
      const missing = (this.#length ?? LENGTH_BYTES) - this.#arrived.bytes
      const part = chunk.subarray(at, at + missing)
      keepPart(this.#arrived, part)
      at += part.length
      if (part.length < missing) break
      const whole = this.#arrived.whole()
      if (this.#length === undefined) this.#begin(whole.readUInt32BE())
      else {
        this.#length = undefined
        events.push(whole)
      }
    }
    return events
  }

  drop(): void {
    this.#arrived.drop()
  }

  #begin(length: number): void {
    if (length === 0) throw new BadWatchError('the watch sent something that is not an event')
    if (length > OBJECT.bytes)
      throw new BadWatchError(`the watch sent an event of more than ${OBJECT.bytes} bytes, which is the limit`)
    this.#length = length
  }
}
