// Gives back the sender's flow-control window when the receiver could not take everything at once.

/**
 * How much of what is owed to give back, with `queued` bytes still to be sent: the room below `water`. All at once would
 * bring in as much again at once, ahead of everyone else on the connection.
 */
export function creditFor(owed: number, queued: number, water: number): number {
  return queued === 0 ? owed : Math.min(owed, Math.max(0, water - queued))
}
