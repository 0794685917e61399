// How large the answer to a call of the gateway's own may be, by its kind. Counting its values, decoding it and JSON.parse are one turn of a thread that
// all users share, so these limits are set by what the worst answer within them costs: at most 50 ms of CPU time for a page. Measured with Node 24 on a
// core of 2.6 GHz that was shared with ten times as much other work (on an idle one about half), medians of 15 turns:
//
// | the worst answers within the limits | count | whole turn |
// |---|---|---|
// | PAGE: 5,000 shapes, whose values change their type; otherwise maps of different strings | 2 ms | 40 ms |
// | PAGE: 100,000 different strings with an escape: V8 keeps one copy of short strings | 3 ms | 31 ms |
// | PAGE: 5,000 shapes, and strings for the rest | 2 ms | 27 ms |
// | OBJECT: 10 MiB, most of it one string of escaped quotes, 20,000 other values | 9 ms | 37 ms |
//
// For the first answers of a thread, and where 90 % of its heap is in use, two to three times that. What the numbers were before: 400,000 different
// strings took 96 ms, 30,000 shapes whose values change their type 48 ms, and counting 10 MiB of digits 118 ms.

/** What countJson counts. */
export interface CountLimits {
  /** Strings, numbers, lists, maps. */
  readonly values: number
  /** Different maps, each with the keys before: V8 has to learn each of them, which costs ten times what a value does. */
  readonly shapes: number
  /** Bytes outside of strings: digits and white space take several times as long to read. */
  readonly bare: number
}

/** Limits of the answers of one kind. */
export interface AnswerLimits extends CountLimits {
  readonly bytes: number
}

const MAX_OBJECT_BYTES = 10 * 1024 * 1024
const MAX_PAGE_BYTES = 1536 * 1024
const MAX_REVIEW_BYTES = 3 * 1024 * 1024
const MAX_DOCUMENT_BYTES = 1024 * 1024
const MAX_BARE_BYTES = 2 * 1024 * 1024
const MAX_VALUES = 100_000
const MAX_REVIEW_VALUES = 10_000
const MAX_DOCUMENT_VALUES = 20_000
const MAX_REPLICA_VALUES = 400_000
const MAX_SHAPES = 5_000

const COUNTS: CountLimits = { values: MAX_VALUES, shapes: MAX_SHAPES, bare: MAX_BARE_BYTES }

/**
 * One object: alone, in a page of one, or in an event of a watch. etcd takes 1.5 MiB of it (--max-request-bytes), of which JSON may make six times
 * as much: that is how it writes control characters.
 */
export const OBJECT: AnswerLimits = { ...COUNTS, bytes: MAX_OBJECT_BYTES }
/** A page of more than one; one that is larger is asked for again with half as many (paged-list.ts). */
export const PAGE: AnswerLimits = { ...COUNTS, bytes: MAX_PAGE_BYTES }
/** The answer to a review; most of its values are groups of the user, and values of its `extra`. */
export const REVIEW: AnswerLimits = { ...COUNTS, bytes: MAX_REVIEW_BYTES, values: MAX_REVIEW_VALUES }
/** A document that is not an object of Kubernetes: of an OpenID provider, of a collector. */
export const DOCUMENT: AnswerLimits = { ...COUNTS, bytes: MAX_DOCUMENT_BYTES, values: MAX_DOCUMENT_VALUES }
/** What another replica of the gateway says of all clusters. It has logged in with the credential of the replicas, so that its turn may take longer. */
export const REPLICA: AnswerLimits = {
  ...COUNTS,
  bytes: MAX_OBJECT_BYTES,
  values: MAX_REPLICA_VALUES,
  bare: MAX_OBJECT_BYTES,
}
/** What says why something was refused: of more than that the rest is not read. */
export const SHORT_TEXT_BYTES: number = 64 * 1024
/** What is not parsed: of a health check. */
export const TEXT: AnswerLimits = { ...COUNTS, bytes: SHORT_TEXT_BYTES }
