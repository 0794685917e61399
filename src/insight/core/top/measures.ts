// What is counted of requests to find out who asks most, and by what they are told apart.

/** By what requests are told apart. */
export const DIMENSIONS = ['user', 'userAgent', 'resource', 'verb', 'namespace', 'address', 'cluster'] as const

export type Dimension = (typeof DIMENSIONS)[number]

/** What rows are sorted by. `latency` is a mean, all others are sums. */
export const SORTS = ['requests', 'bytes', 'latency', 'upstream-seconds', 'listed-bytes', 'refused'] as const

export type Sort = (typeof SORTS)[number]

/** Indexes into a tally: the sums of some requests. */
export const REQUESTS = 0
export const REFUSED = 1
/** Of both bodies. */
export const BYTES = 2
/** Of answers to LIST. */
export const LISTED_BYTES = 3
/** Milliseconds from the request's head to the end of its answer; not of those that run for long, which wait on purpose. */
export const LATENCY_MS = 4
/** Milliseconds until the upstream's response head; not of those that run for long. */
export const UPSTREAM_MS = 5
/** Requests that LATENCY_MS is not of. */
export const UNTIMED = 6
export const TALLY_LENGTH = 7

/** Numbers of a tally where many stand one behind the other, with one more for whoever keeps them. A power of two. */
export const TALLY_WIDTH = 8

/** Those by which a name may be among the largest; UNTIMED is only there for the mean. */
export const RANKED = 6

/** Index into a tally: the sum that is sorted by. */
export const SORT_SUM: Readonly<Record<Sort, number>> = {
  requests: REQUESTS,
  bytes: BYTES,
  latency: LATENCY_MS,
  'upstream-seconds': UPSTREAM_MS,
  'listed-bytes': LISTED_BYTES,
  refused: REFUSED,
}

export function isDimension(text: string): text is Dimension {
  return DIMENSIONS.some((one) => one === text)
}

export function isSort(text: string): text is Sort {
  return SORTS.some((one) => one === text)
}
