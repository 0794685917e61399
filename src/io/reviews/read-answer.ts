// The answer to a review, parsed: who is in the place of an API server is not to hold up the thread that asked.

import { hasMoreValues } from '../../core/objects/value-count.ts'

/** Values in one answer: most are groups of the user, and values of its `extra`. */
export const MAX_ANSWER_VALUES = 10_000

/** @throws {Error} when it is not JSON, or says more than a review can */
export function parseAnswer(text: string): unknown {
  if (hasMoreValues(text, MAX_ANSWER_VALUES)) {
    throw new Error(`the answer has more than ${MAX_ANSWER_VALUES} values, which is the limit`)
  }
  return JSON.parse(text)
}

/** A member of what may be an object; undefined = it is none, or has no such member. */
export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
