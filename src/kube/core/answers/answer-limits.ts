// Maximum size of responses to the gateway's own calls, by kind. Counting values, decoding and JSON.parse take one turn of a thread that
// all users share, so the limits follow from the cost of the worst response within them: at most 50 ms of CPU time for a page. Measured
// with Node 24 on a core of 2.6 GHz shared with ten times as much other work (about half on an idle one), medians of 15 turns:
//
// | worst responses within the limits | count | whole turn |
// |---|---|---|
// | PAGE: 5,000 shapes, whose values change their type; otherwise maps of different strings | 2 ms | 40 ms |
// | PAGE: 100,000 different strings with an escape: V8 keeps one copy of short strings | 3 ms | 31 ms |
// | PAGE: 5,000 shapes, and strings for the rest | 2 ms | 27 ms |
// | OBJECT: 10 MiB, most of it one string of escaped quotes, 20,000 other values | 9 ms | 37 ms |
//
// For the first responses of a thread, and with 90 % of its heap in use, two to three times that. With the earlier limits: 400,000 different
// strings took 96 ms, 30,000 shapes whose values change their type 48 ms, and counting 10 MiB of digits 118 ms.

/** Limits checked by countJson. */
export interface CountLimits {
  /** Strings, numbers, lists, maps. */
  readonly values: number
  /** Distinct map shapes (prefixes of key sequences): V8 has to learn each of them, which costs ten times as much as a value. */
  readonly shapes: number
  /** Bytes outside strings: digits and white space take several times as long to parse. */
  readonly bare: number
}

/** Limits for one kind of response. */
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
 * One object: alone, in a page of one, or in a watch event. etcd accepts 1.5 MiB (--max-request-bytes), which JSON may inflate sixfold by
 * escaping control characters.
 */
export const OBJECT: AnswerLimits = { ...COUNTS, bytes: MAX_OBJECT_BYTES }
/** A page of several objects; a larger one is requested again with half as many (paged-list.ts). */
export const PAGE: AnswerLimits = { ...COUNTS, bytes: MAX_PAGE_BYTES }
/** The response to a review; most of its values are the user's groups, and values of `extra`. */
export const REVIEW: AnswerLimits = { ...COUNTS, bytes: MAX_REVIEW_BYTES, values: MAX_REVIEW_VALUES }
/** A document that is not a Kubernetes object: from an OpenID provider or a collector. */
export const DOCUMENT: AnswerLimits = { ...COUNTS, bytes: MAX_DOCUMENT_BYTES, values: MAX_DOCUMENT_VALUES }
/** Another replica's report on all clusters. It authenticated with the replicas' credential, so its turn may take longer. */
export const REPLICA: AnswerLimits = {
  ...COUNTS,
  bytes: MAX_OBJECT_BYTES,
  values: MAX_REPLICA_VALUES,
  bare: MAX_OBJECT_BYTES,
}
/** A text that explains a refusal; anything longer is not read. */
export const SHORT_TEXT_BYTES: number = 64 * 1024
/** A response that is not parsed, such as a health check's. */
export const TEXT: AnswerLimits = { ...COUNTS, bytes: SHORT_TEXT_BYTES }
