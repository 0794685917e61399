// The answers that record-answers.ts recorded.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface RecordedAnswer {
  /** With the query. */
  readonly path: string
  readonly accept: string
  /** Content-Type of the answer. */
  readonly type: string
  /** The body: JSON as text, Protobuf as base64. */
  readonly text?: string
  readonly base64?: string
}

/** Which objects of a collection a field selector selects. */
export interface RecordedSelector {
  readonly path: string
  readonly selector: string
  readonly status: number
  /** What a refusal says. */
  readonly message?: string
  /** `namespace/name`, or the name. */
  readonly keys?: readonly string[]
}

export interface ReadAnswers {
  readonly lists: readonly RecordedAnswer[]
  readonly objects: readonly RecordedAnswer[]
  readonly selectors: readonly RecordedSelector[]
  readonly watches: readonly RecordedAnswer[]
}

export function readAnswers(): ReadAnswers {
  return JSON.parse(readFileSync(join(import.meta.dirname, '../data/read-answers.json'), 'utf8'))
}

export function bodyOf({ text, base64 }: RecordedAnswer): Buffer {
  return text === undefined ? Buffer.from(base64 ?? '', 'base64') : Buffer.from(text)
}
