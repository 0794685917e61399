// How the window of a side that sends is given back, when the other side could not take at once all that came.

/**
 * How much of what is owed is given back, with `queued` bytes still to be sent: what there is room for below `water`. All at once would
 * bring as much at once, and everybody else on the connection behind it.
 */
export function creditFor(owed: number, queued: number, water: number): number {
  return queued === 0 ? owed : Math.min(owed, Math.max(0, water - queued))
}
