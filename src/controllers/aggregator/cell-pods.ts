// The pods of a cell, over all clusters that it has. Two UpstreamClusters may lead to one cluster, and then both tell of the same pods:
// a pod is one pod, by its uid, whoever tells of it, and what one of them has seen to be gone does not come back by another that is
// late. It may come back, though: a watch with a selector also says that a pod is gone when its labels have left the selection.

import type { LabelSelector } from '../../api/pod-protector/pod-protector.ts'
import { compareVersions, joinVersions } from '../../core/protection/history/resource-version.ts'
import type { PodSnapshot, SnapshotPod } from './pod-snapshot.ts'

/** What a count needs of them. */
export interface CountedPods {
  /** Of the cell; of several clusters, of each. '' = nothing was seen. */
  readonly version: string
  get(uid: string): SnapshotPod | undefined
  /** @throws {SyntaxError} when the selector cannot be read */
  select(namespace: string, selector: LabelSelector): Iterable<SnapshotPod>
}

/** Whoever is later than by so many deletions tells of what is gone once more. */
const MAX_GONE = 20_000

export class CellPods implements CountedPods {
  readonly #snapshots: ReadonlyMap<string, PodSnapshot>
  /**
   * By uid, oldest first: which clusters have seen it to be gone, each with the resourceVersion as of which it was; '' = not known.
   * Empty where there is only one.
   */
  readonly #gone = new Map<string, Map<string, string>>()

  /** @param snapshots by the names of the clusters */
  constructor(snapshots: ReadonlyMap<string, PodSnapshot>) {
    this.#snapshots = snapshots
  }

  get complete(): boolean {
    return [...this.#snapshots.values()].every(({ complete }) => complete)
  }

  get version(): string {
    const versions = new Map([...this.#snapshots].map(([name, { version }]) => [name, version]))
    return joinVersions(versions)
  }

  /** For people: pods of which several tell count as often. */
  get size(): number {
    let size = 0
    for (const snapshot of this.#snapshots.values()) size += snapshot.size
    return size
  }

  get(uid: string): SnapshotPod | undefined {
    let found: SnapshotPod | undefined
    for (const snapshot of this.#snapshots.values()) {
      const pod = snapshot.get(uid)
      if (pod === undefined || this.#isGone(pod)) continue
      if (found === undefined || isLater(pod, found)) found = pod
    }
    return found
  }

  /** Whether some cluster has seen it to be gone, has not told of it again, and did so later than this version of it. */
  #isGone({ uid, resourceVersion }: SnapshotPod): boolean {
    for (const [name, goneAt] of this.#gone.get(uid) ?? []) {
      if (this.#snapshots.get(name)?.get(uid) !== undefined) continue
      // The same: it has left the selection of one cluster with this version. A deletion has one of its own.
      const order = compareVersions(resourceVersion, goneAt)
      if (order === undefined || order < 0) return true
    }
    return false
  }

  select(namespace: string, selector: LabelSelector): Iterable<SnapshotPod> {
    const [only, ...others] = this.#snapshots.values()
    if (only === undefined) return []
    if (others.length === 0) return only.select(namespace, selector)
    const found: SnapshotPod[] = []
    for (const snapshot of this.#snapshots.values()) {
      for (const pod of snapshot.select(namespace, selector)) if (this.get(pod.uid) === pod) found.push(pod)
    }
    return found
  }

  /**
   * One of the clusters has seen it to be gone.
   * @param version newer than any that the pod had while it was there; '' = that is not known
   */
  forget(name: string, uid: string, version: string): void {
    if (this.#snapshots.size < 2) return
    const seen = this.#gone.get(uid) ?? new Map<string, string>()
    seen.set(name, version)
    this.#gone.delete(uid)
    this.#gone.set(uid, seen)
    for (const oldest of this.#gone.keys()) {
      if (this.#gone.size <= MAX_GONE) break
      this.#gone.delete(oldest)
    }
  }

  /** A cluster has gone back in time: what was gone may be there again. */
  restored(): void {
    this.#gone.clear()
  }
}

/** Of two that tell of the same pod, and so of the same cluster. The end of a pod is never taken back. */
function isLater(a: SnapshotPod, b: SnapshotPod): boolean {
  if (a.terminating !== b.terminating) return a.terminating
  return (compareVersions(a.resourceVersion, b.resourceVersion) ?? 0) > 0
}
