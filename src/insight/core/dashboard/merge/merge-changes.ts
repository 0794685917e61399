// Merges the changes of several replicas: most are noticed by each of them, at slightly different times.

import type { PartOf } from '../../../../kit/core/merge/merge.ts'
import type { Change } from '../../../api/overview.ts'

/** A replica may notice a change this much later than another: by probing an endpoint, usually every 10 s. */
const SAME_MS = 15_000

interface Noticed {
  readonly change: Change
  readonly replicas: string[]
}

/**
 * One entry per change noticed by several replicas, with the earliest time. Names the replicas if only some noticed it. Newest first.
 */
export function mergeChanges(parts: readonly PartOf<readonly Change[]>[]): readonly Change[] {
  const all = parts.flatMap(({ replica, part }) => part.map((change) => ({ replica, change })))
  all.sort((a, b) => a.change.at - b.change.at)
  const merged: Noticed[] = []
  const open = new Map<string, Noticed[]>()
  for (const { replica, change } of all) {
    const key = JSON.stringify([change.cluster, change.kind, change.text])
    const alike = open.get(key) ?? []
    // A flapping change is reported by each replica as often as it happened.
    const same = alike.find((one) => change.at - one.change.at <= SAME_MS && !one.replicas.includes(replica))
    if (same !== undefined) {
      same.replicas.push(replica)
      continue
    }
    const noticed = { change, replicas: [replica] }
    merged.push(noticed)
    open.set(key, [...alike.filter((one) => change.at - one.change.at <= SAME_MS), noticed])
  }
  return merged
    .map(({ change, replicas }) =>
      replicas.length === parts.length || change.kind === 'event' ? change : { ...change, replicas },
    )
    .reverse()
}
