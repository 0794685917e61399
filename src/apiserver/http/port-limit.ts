// The memory of a port of the control plane that is divided among those who use it, as metrics name it.

/** `control-bodies`: of bodies that are being received; `control-answers`: of answers that wait for their clients. */
export type PortLimit = 'control-bodies' | 'control-answers'

/** Counts a request that is refused because of one. @param known whether an authenticated user sent it */
export type CountLimited = (limit: PortLimit, known: boolean) => void
