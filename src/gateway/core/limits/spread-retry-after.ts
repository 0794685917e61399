// Retry-After with jitter, so that callers refused together do not come back together.

/** Minimum spread, even for callers that could retry at once. */
const LEAST_SPREAD_SECONDS = 4

/** Fraction of a block by which answers are spread past its end. */
const BLOCK_SPREAD = 0.25
/** client-go sleeps for exactly the Retry-After, whatever happens meanwhile: a restarting controller must not stall for minutes. */
const LONGEST_BLOCK_SECONDS = 10
/** Spread for longer blocks. */
const LONG_BLOCK_SPREAD_SECONDS = 5

/**
 * Whole seconds, spread around the time at which there is likely to be room, so that callers return at the rate they can be served. At
 * least 1; client-go accepts whole seconds only, and waits exactly that long (client-go/rest/with_retry.go).
 * @param likelyMs when a retry is likely to succeed
 * @param random at least 0, less than 1
 */
export function spreadRetryAfter(likelyMs: number, random: number): number {
  const likely = Math.max(1, Math.ceil(likelyMs / 1000))
  return Math.ceil(likely / 2) + Math.floor(random * Math.max(LEAST_SPREAD_SECONDS, likely))
}

/**
 * Whole seconds until a block ends, or up to a quarter later; at least 1, at most 10: a few new tokens are admitted during a longer block.
 * @param leftMs more than 0
 * @param random at least 0, less than 1
 */
export function retryAfterBlock(leftMs: number, random: number): number {
  const seconds = Math.ceil((leftMs / 1000) * (1 + BLOCK_SPREAD * random))
  return seconds <= LONGEST_BLOCK_SECONDS
    ? seconds
    : LONGEST_BLOCK_SECONDS - Math.floor(LONG_BLOCK_SPREAD_SECONDS * random)
}
