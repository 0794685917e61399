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
}

const NEWLINE = 0x0a

/** The data is unreadable, and would be the next time. */
export class BadWatchError extends Error {}

/** The events of a watch, parsed. */
export class WatchLines {
  readonly #lines: EventLines

  /** @param memory as of EventLines */
  constructor(memory: AnswerMemory) {
    this.#lines = new EventLines(memory)
  }

  /** The events completed by `chunk`. @throws {BadWatchError} as EventLines, and if a line is not an event */
  push(chunk: Buffer): WatchEvent[] {
    return this.#lines.push(chunk).map(parseEvent)
  }

  drop(): void {
    this.#lines.drop()
  }
}

/** The lines of a watch, which may be parsed: their values have been counted. */
export class EventLines {
  readonly #line: AnswerReader

  /** @param memory of the current line, which `drop` must release at the end */
  constructor(memory: AnswerMemory) {
    this.#line = new AnswerReader(OBJECT.bytes, memory)
  }

  /** The lines completed by `chunk`, without their ends. @throws {BadWatchError} if a line is too large */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = []
    let start = 0
    for (;;) {
      const end = chunk.indexOf(NEWLINE, start)
      if (end === -1) break
      keepPart(this.#line, chunk.subarray(start, end))
      const line = this.#counted()
      if (line.length > 0) lines.push(line)
      start = end + 1
    }
    keepPart(this.#line, chunk.subarray(start))
    return lines
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
}

/** @throws {BadWatchError} if an event is too large, or there is no room */
export function keepPart(event: AnswerReader, part: Buffer): void {
  const fault = event.add(part)
  if (fault === 'too-large')
    throw new BadWatchError(`the watch sent an event of more than ${OBJECT.bytes} bytes, which is the limit`)
  if (fault === 'no-room')
    throw new BadWatchError('the watch sent an event for which there is no room among the answers that come')
}

/** @throws {BadWatchError} */
export function parseEvent(bytes: Buffer): WatchEvent {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    value = undefined
  }
  if (isRecord(value) && typeof value['type'] === 'string' && isRecord(value['object'])) {
    return { type: value['type'], object: value['object'] }
  }
  throw new BadWatchError('the watch sent something that is not an event')
}
