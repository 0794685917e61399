// The pods of a cell, merged over its clusters. Two UpstreamClusters may point to one cluster, and then both report the same pods. A pod
// is identified by its uid, whichever cluster reports it. Once one has seen it deleted, a late report by another doesn't revive it.
// It can reappear, though: a watch with a selector also reports a pod as deleted when its labels no longer match.

import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { compareVersions, joinVersions } from '../../core/history/resource-version.ts'
import type { PodSnapshot, SnapshotPod } from './pod-snapshot.ts'

/** The subset used for counting. */
export interface CountedPods {
  /** resourceVersion of the cell; with several clusters, of each. '' = nothing seen yet. */
  readonly version: string
  get(uid: string): SnapshotPod | undefined
  /** @throws {SyntaxError} if the selector is invalid */
  select(namespace: string, selector: LabelSelector): Iterable<SnapshotPod>
}

/** Deletions remembered. A cluster that lags further behind revives older ones. */
const MAX_GONE = 20_000

export class CellPods implements CountedPods {
  readonly #snapshots: ReadonlyMap<string, PodSnapshot>
  /**
   * By uid, oldest first: the clusters that have seen the pod deleted, each with the resourceVersion of the deletion; '' = unknown.
   * Empty if there is only one cluster.
   */
  readonly #gone = new Map<string, Map<string, string>>()

  /** @param snapshots by cluster name */
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

  /** For display: a pod reported by several clusters counts once for each. */
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

  /** Whether a cluster has seen the pod deleted after this version of it, and has not reported it again. */
  #isGone({ uid, resourceVersion }: SnapshotPod): boolean {
    for (const [name, goneAt] of this.#gone.get(uid) ?? []) {
      if (this.#snapshots.get(name)?.get(uid) !== undefined) continue
      // Equal: the pod left one cluster's selection with this version. A deletion has its own version.
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
   * One of the clusters has seen the pod deleted.
   * @param version newer than any that the pod had; '' = unknown
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

  /** A cluster was restored from a backup: deleted pods may exist again. */
  restored(): void {
    this.#gone.clear()
  }
}

/** Compares two reports of one pod from the same cluster. Termination is never undone. */
function isLater(a: SnapshotPod, b: SnapshotPod): boolean {
  if (a.terminating !== b.terminating) return a.terminating
  return (compareVersions(a.resourceVersion, b.resourceVersion) ?? 0) > 0
}
