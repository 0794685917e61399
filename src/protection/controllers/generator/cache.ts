// The generator's cache of workloads and PodProtectors: just enough to decide whether there is anything to do.

import { NamesByKey } from '../../../gateway/core/cluster/names-by-key.ts'
import { type JsonObject, nameOf, namespaceOf } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import {
  decideFor,
  factsOf,
  type GeneratorDecision,
  type SourceFacts,
  type SourceRef,
  sourceKey,
  wantedKey,
} from '../../core/generator/decision.ts'
import type { GeneratorKind } from '../../core/generator/kinds.ts'
import { claimedSource } from '../../core/generator/names.ts'
import { cellsToRemove } from '../../core/ledger/cells.ts'

/** The subject of one reconcile turn. */
type GeneratorSubject =
  | { readonly source: SourceRef }
  /** A protector without a watched workload. */
  | { readonly protector: { readonly namespace: string; readonly name: string } }

export class GeneratorCache {
  readonly #kinds: readonly GeneratorKind[]
  readonly #sources = new Map<string, { readonly ref: SourceRef; readonly facts: SourceFacts }>()
  readonly #protectors = new Map<string, JsonObject>()
  /** By `namespace/name` of the protector: the key of the workload that should have it. */
  readonly #wantedBy = new Map<string, string>()
  /** By workload key: protectors that claim to belong to it. */
  readonly #claims = new NamesByKey()
  readonly #subjects = new Map<string, GeneratorSubject>()

  constructor(kinds: readonly GeneratorKind[]) {
    this.#kinds = kinds
  }

  get size(): number {
    return this.#subjects.size
  }

  /** The keys of all subjects. */
  keys(): IterableIterator<string> {
    return this.#subjects.keys()
  }

  subject(key: string): GeneratorSubject | undefined {
    return this.#subjects.get(key)
  }

  /** @returns the key to reconcile */
  putSource(kind: GeneratorKind, object: JsonObject): string {
    const ref: SourceRef = { kind, namespace: namespaceOf(object), name: nameOf(object) }
    const key = sourceKey(ref)
    this.#sources.set(key, { ref, facts: factsOf(object, kind) })
    this.#subjects.set(key, { source: ref })
    this.#wantedBy.set(wantedKey(ref), key)
    return key
  }

  removeSource(key: string): void {
    const source = this.#sources.get(key)
    if (source === undefined) return
    this.#sources.delete(key)
    this.#wantedBy.delete(wantedKey(source.ref))
    this.#tidy(key)
  }

  /** @returns the keys to reconcile; none if only the status has changed */
  putProtector(object: JsonObject): string[] {
    const at = { namespace: namespaceOf(object), name: nameOf(object) }
    const key = `${at.namespace}/${at.name}`
    const kept = withoutStatus(object)
    const before = this.#protectors.get(key)
    this.#protectors.set(key, kept)
    if (before !== undefined && sameJson(unversioned(before), unversioned(kept))) return []
    if (before !== undefined) this.#unclaim(key, before)
    const claimed = this.#claim(key, kept)
    if (claimed === undefined && !this.#wantedBy.has(key)) {
      this.#subjects.set(strayKey(key), { protector: at })
      return [strayKey(key)]
    }
    this.#subjects.delete(strayKey(key))
    return this.#concerned(key, claimed)
  }

  removeProtector(key: string): string[] {
    const before = this.#protectors.get(key)
    if (before === undefined) return []
    this.#protectors.delete(key)
    this.#subjects.delete(strayKey(key))
    return this.#concerned(key, this.#unclaim(key, before))
  }

  /** Names of protectors that claim the workload without being its designated one. */
  otherNames(ref: SourceRef): string[] {
    const key = sourceKey(ref)
    const own = wantedKey(ref)
    const others = [...this.#claims.get(key)].filter((other) => other !== own && !this.#wantedBy.has(other))
    return others.map((other) => other.slice(other.indexOf('/') + 1))
  }

  /** Whether removal of cells is requested. @param key `namespace/name` */
  removesCells(key: string): boolean {
    const protector = this.#protectors.get(key)
    return protector !== undefined && cellsToRemove(protector) !== undefined
  }

  /** The decision from cached state. */
  decide(ref: SourceRef): GeneratorDecision {
    const facts = this.#sources.get(sourceKey(ref))?.facts
    const others = this.otherNames(ref).map((name) => this.#protectors.get(`${ref.namespace}/${name}`))
    const known = others.filter((protector) => protector !== undefined)
    return decideFor(ref, facts, this.#protectors.get(wantedKey(ref)), known)
  }

  #concerned(protectorKey: string, claimed: string | undefined): string[] {
    const wanted = this.#wantedBy.get(protectorKey)
    return [...new Set([claimed, wanted])].filter((key) => key !== undefined)
  }

  #claim(protectorKey: string, protector: JsonObject): string | undefined {
    const ref = this.#claimOf(protector)
    if (ref === undefined) return undefined
    const key = sourceKey(ref)
    this.#claims.add(key, protectorKey)
    this.#subjects.set(key, { source: ref })
    return key
  }

  #unclaim(protectorKey: string, protector: JsonObject): string | undefined {
    const ref = this.#claimOf(protector)
    if (ref === undefined) return undefined
    const key = sourceKey(ref)
    this.#claims.remove(key, protectorKey)
    this.#tidy(key)
    return key
  }

  #claimOf(protector: JsonObject): SourceRef | undefined {
    const claimed = claimedSource(protector, this.#kinds)
    return claimed === undefined ? undefined : { ...claimed, namespace: namespaceOf(protector) }
  }

  #tidy(key: string): void {
    if (!this.#sources.has(key) && this.#claims.get(key).size === 0) this.#subjects.delete(key)
  }
}

/** No prefix of a kind begins with a dash. */
function strayKey(protectorKey: string): string {
  return `- ${protectorKey}`
}

/** Histories are long, and change with every deletion. */
function withoutStatus(object: JsonObject): JsonObject {
  const { status: _, ...rest } = object
  const { managedFields: __, ...metadata } = recordOf(object['metadata'])
  return { ...rest, metadata }
}

function unversioned(object: JsonObject): JsonObject {
  const { resourceVersion: _, generation: __, ...metadata } = object['metadata'] as JsonObject
  return { ...object, metadata }
}
