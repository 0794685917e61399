// Measures of the top talkers report.

/** Sort keys. `latency` is a mean, all others are sums. */
export const SORTS = ['requests', 'bytes', 'latency', 'upstream-seconds', 'listed-bytes', 'refused'] as const

export type Sort = (typeof SORTS)[number]

/** Indexes into a tally: the sums of some requests. */
export const REQUESTS = 0
export const REFUSED = 1
/** Request and response bodies. */
export const BYTES = 2
/** Bodies of LIST responses. */
export const LISTED_BYTES = 3
/** Milliseconds from the request's head to the end of the response; without long-running requests, which wait on purpose. */
export const LATENCY_MS = 4
/** Milliseconds until the upstream's response head; without long-running requests. */
export const UPSTREAM_MS = 5
/** Requests not counted in LATENCY_MS. */
export const UNTIMED = 6
export const TALLY_LENGTH = 7

/** Stride of tallies in an array, with one number to spare for the array's owner. A power of two. */
export const TALLY_WIDTH = 8

/** Measures by which names are ranked; UNTIMED exists only for the mean. */
export const RANKED = 6

/** Index into a tally: the sum to sort by. */
export const SORT_SUM: Readonly<Record<Sort, number>> = {
  requests: REQUESTS,
  bytes: BYTES,
  latency: LATENCY_MS,
  'upstream-seconds': UPSTREAM_MS,
  'listed-bytes': LISTED_BYTES,
  refused: REFUSED,
}

export function isSort(text: string): text is Sort {
  return SORTS.some((one) => one === text)
}
