// The pods of a cell in all of its clusters. Two UpstreamClusters may lead to one cluster, and then both report the same pods. A pod
// is identified by its uid, whoever reports it. Once one cluster has seen it deleted, a late report of another does not bring it back.
// It can come back, though: a watch with a selector also reports a pod as deleted when its labels no longer match.

import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { compareVersions, joinVersions } from '../../core/history/resource-version.ts'
import type { PodSnapshot, SnapshotPod } from './pod-snapshot.ts'

/** What a count needs of the pods. */
export interface CountedPods {
  /** resourceVersion of the cell; with several clusters, of each. '' = nothing was seen. */
  readonly version: string
  get(uid: string): SnapshotPod | undefined
  /** @throws {SyntaxError} when the selector cannot be read */
  select(namespace: string, selector: LabelSelector): Iterable<SnapshotPod>
}

/** How many deletions are remembered. A cluster that is further behind reports older ones again. */
const MAX_GONE = 20_000

export class CellPods implements CountedPods {
  readonly #snapshots: ReadonlyMap<string, PodSnapshot>
  /**
   * By uid, oldest first: the clusters that have seen the pod deleted, each with the resourceVersion of the deletion; '' = not known.
   * Empty if there is only one cluster.
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

  /** For people: a pod that several clusters report counts once for each. */
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
      // Equal: with this version the pod left the selection of one cluster. A deletion has a version of its own.
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
   * @param version newer than any that the pod had; '' = not known
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

/** For two reports of one pod, which come from the same cluster. Termination is never undone. */
function isLater(a: SnapshotPod, b: SnapshotPod): boolean {
  if (a.terminating !== b.terminating) return a.terminating
  return (compareVersions(a.resourceVersion, b.resourceVersion) ?? 0) > 0
}
