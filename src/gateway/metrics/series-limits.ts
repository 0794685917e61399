// Whether a resource is known to exist, how many there may be, and how the rest is counted.

/** Number of names in a resource's row, starting at `first`. */
export const RESOURCE_NAMES = 4

// Values of standing.
/** No upstream has responded with success for it: the name may be made up. */
export const UNPROVEN = 0
export const PROVEN = 1
/** Requests that name no resource. */
export const PATH = 2
/** Resources beyond the limit. */
export const OTHER = 3

/** Distinct resources that one cluster may have; what comes after is `other`. */
export const MAX_RESOURCES = 500
/** How many of them may be unproven, so that made-up names cannot fill the table. */
export const MAX_UNPROVEN_RESOURCES = 100

/** Code of the row for whatever does not fit into the table of endpoints and codes. */
export const OTHER_CODE = -1
