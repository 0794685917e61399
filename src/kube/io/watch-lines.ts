// The events of a watch in JSON: one document per line (apimachinery/pkg/watch: one {"type","object"} per frame).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { OBJECT } from '../core/answers/answer-limits.ts'
import { type AnswerMemory, AnswerReader } from '../core/answers/answer-reader.ts'
import { AnswerTooLargeError } from '../core/answers/call-errors.ts'
import { COUNT_SEED } from './answers/thread-answers.ts'

export interface WatchEvent {
  readonly type: string
  readonly object: JsonObject
  /** The line, without its end. */
  readonly bytes: Buffer
}

const NEWLINE = 0x0a

/** The data is unreadable, and would be the next time. */
export class BadWatchError extends Error {}

export class WatchLines {
  readonly #line: AnswerReader

  /** @param memory of the current line, which `drop` must release at the end */
  constructor(memory: AnswerMemory) {
    this.#line = new AnswerReader(OBJECT.bytes, memory)
  }

  /** The events completed by `chunk`. @throws {BadWatchError} if this is not a watch, or a line is too large */
  push(chunk: Buffer): WatchEvent[] {
    const events: WatchEvent[] = []
    let start = 0
    for (;;) {
      const end = chunk.indexOf(NEWLINE, start)
      if (end === -1) break
      this.#keep(chunk.subarray(start, end))
      const line = this.#counted()
      if (line.length > 0) events.push(readEvent(line))
      start = end + 1
    }
    this.#keep(chunk.subarray(start))
    return events
  }

  drop(): void {
    this.#line.drop()
  }

  #counted(): Buffer {
    try {
      return this.#line.countedBytes(OBJECT, COUNT_SEED)
    } catch (error) {
      if (!(error instanceof AnswerTooLargeError)) throw error
      throw new BadWatchError(`the watch sent an event with ${error.excess}, which is the limit`)
    }
  }

  #keep(part: Buffer): void {
    const fault = this.#line.add(part)
    if (fault === 'too-large')
      throw new BadWatchError(`the watch sent an event of more than ${OBJECT.bytes} bytes, which is the limit`)
    if (fault === 'no-room')
      throw new BadWatchError('the watch sent an event for which there is no room among the answers that come')
  }
}

function readEvent(bytes: Buffer): WatchEvent {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    value = undefined
  }
  if (isRecord(value) && typeof value['type'] === 'string' && isRecord(value['object'])) {
    return { type: value['type'], object: value['object'], bytes }
  }
  throw new BadWatchError('the watch sent something that is not an event')
}
