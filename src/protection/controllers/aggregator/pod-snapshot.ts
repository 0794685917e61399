// The pods of a cell at one resourceVersion. Of a 10 KB pod only a few hundred bytes are kept; the rest is dropped as soon
// as it is read.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import type { PodFacts } from '../../api/protection.ts'
import { podFacts, readyOwners } from '../../core/quota/pod-facts.ts'
import { PodIndex } from '../../core/selectors/pod-index.ts'

type Labels = PodFacts['labels']

/** A pod as the stream reported it. */
export interface SnapshotPod extends PodFacts {
  /** Monotonic ms: since when it has been seen ready without interruption; 0 = not ready. It may have been ready earlier. */
  readonly readySeenMs: number
}

export interface PodChange {
  readonly before: SnapshotPod | undefined
  readonly after: SnapshotPod | undefined
}

export class PodSnapshot {
  #index = new PodIndex<SnapshotPod>()
  /** The index that `replace` will activate, and how many pods it was built from. */
  #next = { index: new PodIndex<SnapshotPod>(), pods: 0 }
  #version = ''
  #complete = false
  readonly #labels = new SharedLabels()
  readonly #monotonic: () => number

  /** @param monotonic milliseconds */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
  }

  /** Whether all pods were listed at least once. */
  get complete(): boolean {
    return this.#complete
  }

  /** Everything up to here has been seen; '' = nothing. */
  get version(): string {
    return this.#version
  }

  get size(): number {
    return this.#index.size
  }

  get(uid: string): SnapshotPod | undefined {
    return this.#index.get(uid)
  }

  /** @throws {SyntaxError} if the selector is invalid */
  select(namespace: string, selector: LabelSelector): Iterable<SnapshotPod> {
    return this.#index.select(namespace, selector)
  }

  /** A page of the pods that `replace` will be called with: indexing 100,000 at once would block the event loop for a second. */
  prepare(pods: readonly JsonObject[], first: boolean): void {
    if (first) this.#next = { index: new PodIndex(), pods: 0 }
    const next = this.#next
    for (const pod of pods) {
      const facts = this.#factsOf(pod, false)
      if (facts !== undefined) next.index.put(facts.uid, facts.namespace, facts.labels, facts)
    }
    next.pods += pods.length
  }

  /**
   * All pods at one moment. The previous pods stay in force until all of these have arrived.
   * @param onGone called for each known uid that is missing
   */
  replace(pods: readonly JsonObject[], onGone?: (uid: string) => void): void {
    if (this.#next.pods !== pods.length) this.prepare(pods, true)
    if (onGone !== undefined) {
      for (const uid of this.#index.uids()) if (this.#next.index.get(uid) === undefined) onGone(uid)
    }
    this.#index = this.#next.index
    this.#next = { index: new PodIndex(), pods: 0 }
    this.#version = ''
    this.#complete = true
  }

  change(type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: JsonObject): PodChange {
    const facts = this.#factsOf(pod, true)
    if (facts === undefined) return { before: undefined, after: undefined }
    const before = this.#index.get(facts.uid)
    if (type === 'DELETED') {
      this.#index.remove(facts.uid)
      return { before, after: undefined }
    }
    this.#index.put(facts.uid, facts.namespace, facts.labels, facts)
    return { before, after: facts }
  }

  reached(version: string): void {
    this.#version = version
  }

  /** @param live reported by an event; otherwise by a list, which doesn't tell since when */
  #factsOf(pod: JsonObject, live: boolean): SnapshotPod | undefined {
    const facts = podFacts(pod)
    if (facts === undefined) return undefined
    const labels = this.#labels.shared(facts.labels, this.#index.size + this.#next.index.size)
    if (!facts.ready) return { ...facts, labels, readySeenMs: 0 }
    const { uid, readySinceMs } = facts
    const known = this.#index.get(uid)
    if (known?.ready === true && readySinceMs !== 0 && known.readySinceMs === readySinceMs) {
      return { ...facts, labels, readySeenMs: known.readySeenMs, readyWrittenMs: known.readyWrittenMs }
    }
    // An event arrives at once and needs no timestamp; the clock behind a timestamp may just have been set.
    return { ...facts, labels, readySeenMs: this.#monotonic(), readyWrittenMs: live ? 0 : facts.readyWrittenMs }
  }
}

/** Whether both count the same; a different resourceVersion alone makes no difference. */
export function sameForCounting(a: PodFacts, b: PodFacts): boolean {
  return (
    a.terminating === b.terminating &&
    a.scheduled === b.scheduled &&
    a.running === b.running &&
    a.ready === b.ready &&
    a.readySinceMs === b.readySinceMs &&
    a.readyWrittenMs === b.readyWrittenMs &&
    sameLabels(a, b)
  )
}

export function sameLabels({ labels: a }: PodFacts, { labels: b }: PodFacts): boolean {
  if (a === b) return true
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key])
}

/** From the owner of condition Ready, only that it owns it. */
const READY_FIELDS = { 'f:status': { 'f:conditions': { 'k:{"type":"Ready"}': {} } } }
const KEPT_ANNOTATIONS_PREFIX = 'podseidon.kubewharf.io/'

/**
 * Keeps only what podFacts and sync times read of a pod: for FollowChoice.transform.
 * @param annotation one more to keep; '' = none
 */
export function slimPod(pod: JsonObject, annotation = ''): JsonObject {
  const metadata = recordOf(pod['metadata'])
  const status = recordOf(pod['status'])
  const annotations = recordOf(metadata['annotations'])
  const kept = Object.entries(annotations).filter(
    ([key]) => key === annotation || key.startsWith(KEPT_ANNOTATIONS_PREFIX),
  )
  return {
    metadata: {
      namespace: metadata['namespace'],
      name: metadata['name'],
      uid: metadata['uid'],
      resourceVersion: metadata['resourceVersion'],
      creationTimestamp: metadata['creationTimestamp'],
      deletionTimestamp: metadata['deletionTimestamp'],
      deletionGracePeriodSeconds: metadata['deletionGracePeriodSeconds'],
      labels: metadata['labels'],
      ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }),
      managedFields: readyOwners(metadata).map(({ time }) => ({ time, fieldsV1: READY_FIELDS })),
    },
    status: {
      phase: status['phase'],
      startTime: status['startTime'],
      conditions: status['conditions'],
    },
  }
}

/** Interns labels: the pods of a workload mostly have the same ones. */
class SharedLabels {
  readonly #known = new Map<string, Labels>()

  /** @param pods number of pods: far more label sets than that are leftovers */
  shared(labels: Labels, pods: number): Labels {
    const key = JSON.stringify(labels)
    const known = this.#known.get(key)
    if (known !== undefined) return known
    if (this.#known.size > 2 * pods + 1000) this.#known.clear()
    this.#known.set(key, labels)
    return labels
  }
}
