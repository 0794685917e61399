// PodProtectors for the ledger and the aggregators: by name, and by the labels of the pods that they select. A partly
// unreadable one doesn't affect the others.

import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import type { LabelSelector } from '../../kit/api/validation/label-selector-schema.ts'
import { sameJson } from '../../kit/core/text/same-json.ts'
import type { Labels } from '../../kube/core/selectors/label-requirement.ts'
import type { PodProtector, PodProtectorSpec } from '../api/pod-protector.ts'
import { compareVersions } from '../core/history/resource-version.ts'
import { readProtector } from '../core/requests/read-protector.ts'
import { ProtectorIndex } from '../core/selectors/protector-index.ts'

export interface LiveProtector {
  /** `namespace/name`. */
  readonly key: string
  /** Replaced as a whole by each change. Unreadable fields of its spec keep their previous value. */
  protector: PodProtector
  /** What is unreadable, and the effect; '' = nothing. */
  fault: string
}

/** @param gone it was deleted */
type ProtectorListener = (live: LiveProtector, gone: boolean) => void

export class ProtectorTable {
  /** Whether all were listed once: until then, no pod can be assumed to have no protector. */
  synced = false
  readonly #live = new Map<string, LiveProtector>()
  readonly #protecting = new ProtectorIndex()
  readonly #aggregating = new ProtectorIndex()
  readonly #listeners = new Set<ProtectorListener>()
  /** Number of protectors in a namespace. */
  readonly #counts = new Map<string, number>()
  #namespaces: ReadonlySet<string> = new Set()

  get size(): number {
    return this.#live.size
  }

  /**
   * Adds or updates one. A version older than the known one (by resourceVersion, of the same uid) changes nothing.
   * @returns the known state afterwards; undefined if it has no name or namespace
   */
  put(object: JsonObject): LiveProtector | undefined {
    return this.#put(object, false)
  }

  remove(namespace: string, name: string): void {
    const key = `${namespace}/${name}`
    const live = this.#live.get(key)
    if (live === undefined) return
    this.#live.delete(key)
    this.#protecting.remove(key)
    this.#aggregating.remove(key)
    this.#count(namespace, -1)
    this.#tell(live, true)
  }

  /** Replaces all: whatever is missing was deleted. */
  replace(objects: readonly JsonObject[]): void {
    const kept = new Set<string>()
    for (const object of objects) {
      const live = this.#put(object, true)
      if (live !== undefined) kept.add(live.key)
    }
    for (const { key, protector } of [...this.#live.values()]) {
      if (!kept.has(key)) this.remove(namespaceOf(protector), protector.metadata.name)
    }
    this.synced = true
  }

  get(key: string): LiveProtector | undefined {
    return this.#live.get(key)
  }

  /** Protectors of a pod (spec.selector), sorted by key. */
  matching(namespace: string, labels: Readonly<Record<string, string>>): LiveProtector[] {
    return this.#found(this.#protecting.query(namespace, labels))
  }

  /** Protectors that count a pod (spec.aggregationSelector, or else spec.selector), sorted by key. */
  aggregating(namespace: string, labels: Readonly<Record<string, string>>): LiveProtector[] {
    return this.#found(this.#aggregating.query(namespace, labels))
  }

  values(): IterableIterator<LiveProtector> {
    return this.#live.values()
  }

  /** Namespaces with a protector. A new set when they change. */
  namespaces(): ReadonlySet<string> {
    return this.#namespaces
  }

  /** @returns a function that removes the listener */
  onChange(listener: ProtectorListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #put(object: JsonObject, whatever: boolean): LiveProtector | undefined {
    const namespace = isRecord(object['metadata']) ? object['metadata']['namespace'] : undefined
    const name = nameOf(object)
    if (typeof namespace !== 'string' || namespace === '' || name === '') return undefined
    const key = `${namespace}/${name}`
    const known = this.#live.get(key)
    if (known !== undefined && this.#isOld(object, known, whatever)) return known
    const { protector, faults } = readProtector(object, known?.protector)
    const { spec } = protector
    // Most changes are status changes.
    if (known === undefined || !sameJson(spec.selector, known.protector.spec.selector)) {
      this.#protecting.put(key, namespace, spec.selector)
    }
    const counted = countedBy(spec)
    if (known === undefined || !sameJson(counted, countedBy(known.protector.spec))) {
      this.#aggregating.put(key, namespace, counted)
    }
    const live = known ?? { key, protector, fault: '' }
    live.protector = protector
    live.fault = faults.join('; ')
    if (known === undefined) {
      this.#live.set(key, live)
      this.#count(namespace, 1)
    }
    this.#tell(live, false)
    return live
  }

  /** A list is authoritative even if it is older, as after a restored backup; but the same version changes nothing. */
  #isOld(object: JsonObject, { protector }: LiveProtector, whatever: boolean): boolean {
    const { uid = '', resourceVersion = '' } = object['metadata'] as PodProtector['metadata']
    const before = protector.metadata
    if (uid !== before.uid) return false
    const order = compareVersions(resourceVersion, before.resourceVersion ?? '')
    return order === 0 || (order !== undefined && order < 0 && !whatever)
  }

  #found(keys: readonly string[]): LiveProtector[] {
    return keys.flatMap((key) => this.#live.get(key) ?? [])
  }

  #count(namespace: string, by: 1 | -1): void {
    const count = (this.#counts.get(namespace) ?? 0) + by
    if (count === 0) this.#counts.delete(namespace)
    else this.#counts.set(namespace, count)
    if (count === 0 || (count === 1 && by === 1)) this.#namespaces = new Set(this.#counts.keys())
  }

  #tell(live: LiveProtector, gone: boolean): void {
    for (const listener of this.#listeners) listener(live, gone)
  }
}

function countedBy({ selector, aggregationSelector = selector }: PodProtectorSpec): LabelSelector {
  return aggregationSelector
}

function namespaceOf({ metadata }: PodProtector): string {
  return metadata.namespace ?? ''
}

/** The saved part of a PodProtector. */
export interface KeptProtector {
  readonly key: string
  readonly namespace: string
  readonly selector: LabelSelector
}

/**
 * PodProtectors from a last good state: which pods have one, without availability. If the core cluster is unreachable at startup, deletions of unprotected
 * pods pass as usual; for protected ones the failurePolicy decides.
 */
export class RestoredProtectors {
  readonly #index = new ProtectorIndex()
  readonly #namespaces = new Set<string>()

  /** @param records as saved; invalid ones are skipped */
  constructor(records: readonly unknown[]) {
    for (const record of records) {
      if (!isRecord(record) || !isRecord(record['selector'])) continue
      const { key, namespace, selector } = record as unknown as KeptProtector
      this.#namespaces.add(namespace)
      this.#index.put(key, namespace, selector)
    }
  }

  get namespaces(): ReadonlySet<string> {
    return this.#namespaces
  }

  /** Keys of those that protect a pod. */
  matching(namespace: string, labels: Labels): readonly string[] {
    return this.#index.query(namespace, labels)
  }
}
