// What has happened between what was known and a new list, as the changes of a watch: sorted by resourceVersion, each with one of its own, so
// that a client that resumes between two of them misses none. Deletions have the first versions that are possible: from there on a cluster, too, tells
// what such a client lacks.

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
 * @param knownVersion of what was known; older than all changes
 */
export function differenceOf<T extends Versioned>(
  known: ReadonlyMap<string, T>,
  listed: ReadonlyMap<string, T>,
  knownVersion: string,
): readonly ListedChange<T>[] {
  const changes: ListedChange<T>[] = []
  const replaced: [key: string, before: T, after: T][] = []
  const versions = new UnusedVersions()
  for (const [key, object] of listed) {
    const { uid, resourceVersion } = object.facts
    versions.use(BigInt(resourceVersion))
    const before = known.get(key)
    if (before === undefined) changes.push({ type: 'ADDED', key, resourceVersion, object })
    else if (before.facts.uid !== uid) replaced.push([key, before, object])
    else if (before.facts.resourceVersion !== resourceVersion)
      changes.push({ type: 'MODIFIED', key, resourceVersion, object })
  }
  for (const [key, before, object] of replaced) {
    const { resourceVersion } = object.facts
    const between = String(versions.takeUpTo(BigInt(resourceVersion) - 1n))
    changes.push({ type: 'DELETED', key, resourceVersion: between, object: before })
    changes.push({ type: 'ADDED', key, resourceVersion, object })
  }
  let last = BigInt(knownVersion)
  for (const [key, object] of known) {
    if (listed.has(key)) continue
    // Each took a version of its own, which is not known.
    last = versions.takeBehind(last)
    changes.push({ type: 'DELETED', key, resourceVersion: String(last), object })
  }
  return changes.sort((a, b) => compareResourceVersions(a.resourceVersion, b.resourceVersion) ?? 0)
}

/** Versions that nothing has. The list may use any number of them one after the other, so each run is walked through once. */
class UnusedVersions {
  /** For each that is used a lower one, such that all between them are used too. By their text: V8 looks at 64 bits of a bigint. */
  readonly #lower = new Map<string, bigint>()

  use(version: bigint): void {
    this.#lower.set(String(version), version - 1n)
  }

  /** The oldest behind this one, which is not older than the last time; it is used from now on. */
  takeBehind(version: bigint): bigint {
    let next = version + 1n
    while (this.#lower.has(String(next))) next++
    this.use(next)
    return next
  }

  /** The newest, from this one down; it is used from now on. */
  takeUpTo(from: bigint): bigint {
    const passed: string[] = []
    let version = from
    for (;;) {
      const text = String(version)
      const lower = this.#lower.get(text)
      if (lower === undefined) break
      passed.push(text)
      version = lower
    }
    for (const text of passed) this.#lower.set(text, version)
    this.use(version)
    return version
  }
}
