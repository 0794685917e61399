// The rule for what only one cluster can have, whatever the source: the current holder keeps it, else the first in order gets it; a loser falls back
// to its last good version, or is not loaded.

import type { ResolvedCluster } from '../../../api/resource-source.ts'
import {
  type ClusterConflict,
  claimsOf,
  findConflicts,
  heldClaims,
} from '../../../api/upstream-cluster/cluster-conflicts.ts'
import { NamesByKey } from '../../../core/cluster/names-by-key.ts'

/**
 * Removes from `wanted` what must not be in force. Falling back may revive an old claim, hence the loop; it ends, because versions in force have no
 * conflicts among each other and never lose. After the first round only fallbacks can cause conflicts, so a chain of clusters that each make the next
 * fall back costs time linear in its length.
 *
 * @param wanted new versions if good, else the last good ones; in the order in which claims are granted
 * @param inForce every cluster that shares a claim with one of `wanted` must be among these, if it is in force at all
 * @param onLoss called for each lost claim, with the version of its holder
 */
export function settleClaims<Version extends ResolvedCluster>(
  wanted: Map<string, Version>,
  inForce: ReadonlyMap<string, Version>,
  onLoss: (conflict: ClusterConflict, holder: Version | undefined, fallsBack: boolean) => void,
): void {
  const holds = heldClaims([...inForce.values()].map((cluster) => cluster.object))
  const places = new Map([...wanted.keys()].map((name, place) => [name, place]))
  const claimants = new NamesByKey()
  for (const [name, version] of wanted) for (const key of keysOf(version)) claimants.add(key, name)
  let names: readonly string[] = [...wanted.keys()]
  while (names.length > 0) {
    const members = names.flatMap((name) => wanted.get(name)?.object ?? [])
    const conflicts = findConflicts(members, holds)
    const involved = new Set(conflicts.flatMap(({ loser, holder }) => [loser, holder]))
    const before = new Map([...involved].map((name) => [name, wanted.get(name)]))
    for (const conflict of conflicts) {
      const { loser, holder } = conflict
      const last = inForce.get(loser)
      const fallsBack = last !== undefined && before.get(loser) !== last
      if (fallsBack) wanted.set(loser, last)
      else wanted.delete(loser)
      onLoss(conflict, before.get(holder), fallsBack)
    }
    const next = new Set<string>()
    const losers = new Set(conflicts.map(({ loser }) => loser))
    for (const loser of losers) for (const key of keysOf(before.get(loser))) claimants.remove(key, loser)
    for (const loser of losers) for (const key of keysOf(wanted.get(loser))) claimants.add(key, loser)
    for (const loser of losers) {
      for (const key of keysOf(wanted.get(loser))) for (const name of claimants.get(key)) next.add(name)
    }
    names = [...next].sort((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0))
  }
}

function keysOf(version: ResolvedCluster | undefined): readonly string[] {
  return version === undefined ? [] : claimsOf(version.object).map(({ key }) => key)
}
