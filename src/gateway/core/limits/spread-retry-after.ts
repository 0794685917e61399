// When those who are refused together may come back: not together.

/** The least range, also of those who could come back at once. */
const LEAST_SPREAD_SECONDS = 4

/** The part of a block by which answers are spread behind its end. */
const BLOCK_SPREAD = 0.25
/** client-go sleeps as long as it is told, whatever happens meanwhile: a controller that restarts must not stand still for minutes. */
const LONGEST_BLOCK_SECONDS = 10
/** By which answers of longer blocks are spread. */
const LONG_BLOCK_SPREAD_SECONDS = 5

/**
 * Whole seconds around the time at which there is likely to be room: as many come as are served meanwhile. At least 1; client-go counts
 * whole seconds only, and waits exactly that time (client-go/rest/with_retry.go).
 * @param likelyMs when another attempt is likely to succeed
 * @param random at least 0, less than 1
 */
export function spreadRetryAfter(likelyMs: number, random: number): number {
  const likely = Math.max(1, Math.ceil(likelyMs / 1000))
  return Math.ceil(likely / 2) + Math.floor(random * Math.max(LEAST_SPREAD_SECONDS, likely))
}

/**
 * Whole seconds until a block is over, or a quarter later; at least 1, and at most 10: of a longer block a few new tokens are let through.
 * @param leftMs more than 0
 * @param random at least 0, less than 1
 */
export function retryAfterBlock(leftMs: number, random: number): number {
  const seconds = Math.ceil((leftMs / 1000) * (1 + BLOCK_SPREAD * random))
  return seconds <= LONGEST_BLOCK_SECONDS
    ? seconds
    : LONGEST_BLOCK_SECONDS - Math.floor(LONG_BLOCK_SPREAD_SECONDS * random)
}
