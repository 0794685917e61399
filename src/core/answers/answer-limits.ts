// How large the answer to a call of the gateway's own may be, by its kind. JSON.parse and what follows it are one turn of a thread that all users
// share, so these limits are what such a turn may cost. Measured with Node 24 on a core of 2.5 GHz that other work shared, CPU time with the code warm;
// for the first answers of a thread, and where 90 % of its heap were in use, two to three times that:
//
// | answer | count | JSON.parse |
// |---|---|---|
// | 2 MiB of pods as kubelets and controllers write them: 300 pods, 128,000 values, 94 shapes | 5 ms | 6 ms |
// | 400,000 values `{"name":"A"}` or `{}` | 8 ms | 8 to 20 ms |
// | 30,000 shapes, maps whose keys are all different | 2 ms | 20 ms |
// | 10 MiB of escaped characters | 16 ms | 12 ms |
//
// Without the limits: 4 MiB of different keys 200 ms, 60 MiB of `{},` in a small heap minutes.

/** Limits of the answers of one kind. */
export interface AnswerLimits {
  readonly bytes: number
  /** Texts, numbers, lists, maps: as countJson counts them. */
  readonly values: number
  /** Different maps, each with the keys before: V8 has to learn each of them, which costs ten times what a value does. */
  readonly shapes: number
}

const MAX_OBJECT_BYTES = 10 * 1024 * 1024
const MAX_PAGE_BYTES = 2 * 1024 * 1024
const MAX_REVIEW_BYTES = 3 * 1024 * 1024
const MAX_DOCUMENT_BYTES = 1024 * 1024
const MAX_OBJECT_VALUES = 400_000
const MAX_PAGE_VALUES = 200_000
const MAX_REVIEW_VALUES = 10_000
const MAX_DOCUMENT_VALUES = 20_000
const MAX_SHAPES = 30_000

/**
 * One object: alone, in a page of one, or in an event of a watch. etcd takes 1.5 MiB of it (--max-request-bytes), of which JSON may make six times
 * as much: that is how it writes control characters.
 */
export const OBJECT: AnswerLimits = { bytes: MAX_OBJECT_BYTES, values: MAX_OBJECT_VALUES, shapes: MAX_SHAPES }
/** A page of more than one; one that is larger is asked for again with half as many (paged-list.ts). */
export const PAGE: AnswerLimits = { bytes: MAX_PAGE_BYTES, values: MAX_PAGE_VALUES, shapes: MAX_SHAPES }
/** The answer to a review; most of its values are groups of the user, and values of its `extra`. */
export const REVIEW: AnswerLimits = { bytes: MAX_REVIEW_BYTES, values: MAX_REVIEW_VALUES, shapes: MAX_SHAPES }
/** A document that is not an object of Kubernetes: of an OpenID provider, of a collector. */
export const DOCUMENT: AnswerLimits = { bytes: MAX_DOCUMENT_BYTES, values: MAX_DOCUMENT_VALUES, shapes: MAX_SHAPES }
/** What says why something was refused: of more than that the rest is not read. */
export const SHORT_TEXT_BYTES: number = 64 * 1024
/** What is not parsed: of a health check. */
export const TEXT: AnswerLimits = { bytes: SHORT_TEXT_BYTES, values: SHORT_TEXT_BYTES, shapes: SHORT_TEXT_BYTES }
