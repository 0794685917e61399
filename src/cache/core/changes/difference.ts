// What has happened between what was known and a new list, as the changes of a watch: sorted by resourceVersion, each with one of its own, so
// that a client that resumes between two of them misses none.

import { compareResourceVersions } from '../../../kube/core/objects/resource-version.ts'

interface Versioned {
  readonly facts: { readonly uid: string; readonly resourceVersion: string }
}

export interface ListedChange<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly key: string
  /** Version of the change. */
  readonly resourceVersion: string
  /** The new object; the previous one of a deletion. */
  readonly object: T
}

/**
 * @param listed the new objects
 * @param listVersion of the list; newer than all known and listed objects
 */
export function differenceOf<T extends Versioned>(
  known: ReadonlyMap<string, T>,
  listed: ReadonlyMap<string, T>,
  listVersion: string,
): readonly ListedChange<T>[] {
  const changes: ListedChange<T>[] = []
  const replaced: [key: string, before: T, after: T][] = []
  const used = new Set<string>()
  for (const [key, object] of listed) {
    const { uid, resourceVersion } = object.facts
    used.add(resourceVersion)
    const before = known.get(key)
    if (before === undefined) changes.push({ type: 'ADDED', key, resourceVersion, object })
    else if (before.facts.uid !== uid) replaced.push([key, before, object])
    else if (before.facts.resourceVersion !== resourceVersion)
      changes.push({ type: 'MODIFIED', key, resourceVersion, object })
  }
  for (const [key, before, object] of replaced) {
    const { resourceVersion } = object.facts
    const between = unusedBelow(BigInt(resourceVersion) - 1n, used)
    changes.push({ type: 'DELETED', key, resourceVersion: between, object: before })
    changes.push({ type: 'ADDED', key, resourceVersion, object })
  }
  let last = BigInt(listVersion)
  for (const [key, object] of known) {
    if (listed.has(key)) continue
    // Each took a version of its own, which is not known; the newest that are possible.
    const resourceVersion = unusedBelow(last, used)
    last = BigInt(resourceVersion) - 1n
    changes.push({ type: 'DELETED', key, resourceVersion, object })
  }
  return changes.sort((a, b) => compareResourceVersions(a.resourceVersion, b.resourceVersion) ?? 0)
}

/** The newest version that nothing has, from this one down. */
function unusedBelow(from: bigint, used: Set<string>): string {
  let version = from
  while (used.has(String(version))) version--
  used.add(String(version))
  return String(version)
}
