// The rule for what only one cluster can have, whatever the source: who has it in force keeps it, else the first in order
// gets it; who loses falls back to its last good version, or is not loaded.

import { type ClusterConflict, findConflicts, heldClaims } from '../api/cluster-conflicts.ts'
import type { ResolvedCluster } from '../api/ports.ts'

/**
 * Takes out of `wanted` what may not be in force. Falling back may revive an old claim, hence the loop; it ends, because
 * versions in force have no conflicts among them and never lose.
 *
 * @param wanted new versions where they are good, else the last good ones; in the order in which claims are given
 * @param inForce every cluster that shares a claim with one of `wanted` must be among these, if it is in force at all
 * @param onLoss each claim that is lost, with the version of the holder that has it
 */
export function settleClaims<Version extends ResolvedCluster>(
  wanted: Map<string, Version>,
  inForce: ReadonlyMap<string, Version>,
  onLoss: (conflict: ClusterConflict, holder: Version | undefined, fallsBack: boolean) => void,
): void {
  const holds = heldClaims([...inForce.values()].map((cluster) => cluster.object))
  for (;;) {
    const conflicts = findConflicts(
      [...wanted.values()].map(({ object }) => object),
      holds,
    )
    if (conflicts.length === 0) return
    const before = new Map(wanted)
    for (const conflict of conflicts) {
      const { loser, holder } = conflict
      const last = inForce.get(loser)
      const fallsBack = last !== undefined && before.get(loser) !== last
      if (fallsBack) wanted.set(loser, last)
      else wanted.delete(loser)
      onLoss(conflict, before.get(holder), fallsBack)
    }
  }
}
