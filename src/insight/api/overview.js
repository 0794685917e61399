// What `/api/v1/overview` answers: one look at all clusters, a page of tiles at a time, so that it stays small with a thousand of them.
// All times are milliseconds since the epoch; rates are of the last step (STEP_SECONDS) of the gateway's own samples.
/** Between two samples of the counts, seconds. */
export const STEP_SECONDS = 10
/** Steps that are kept: half an hour. */
export const STEPS = 180
/** Tiles of one answer. */
export const TILES_A_PAGE = 60
