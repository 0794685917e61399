// Whether a resource is known to exist, how many there may be, and what counts the rest.

/** Number of names of a resource's row, from `first` on. */
export const RESOURCE_NAMES = 4

// The standing of a resource.
/** No upstream has answered successfully for it: requests may have invented it. */
export const UNPROVEN = 0
export const PROVEN = 1
/** Requests that name no resource. */
export const PATH = 2
/** Resources beyond the limit. */
export const OTHER = 3

/** Distinct resources that one cluster may have; what comes after is `other`. */
export const MAX_RESOURCES = 500
/** How many of them may be unproven, so that nobody fills the table with invented names. */
export const MAX_UNPROVEN_RESOURCES = 100

/** The code of the row that counts what does not fit into the table of endpoints and codes. */
export const OTHER_CODE = -1
