// How many reads of each resource were answered, or forwarded and why: gateway threads count, and tell the main thread the increase.

import type { CacheResult } from '../requests/read-request.ts'
import type { CollectionId } from './collection.ts'

export type CountedResource = Pick<CollectionId, 'cluster' | 'group' | 'version' | 'resource'>

export interface ReadCount {
  readonly id: CountedResource
  /** By result. */
  readonly counts: Readonly<Partial<Record<CacheResult, number>>>
}

interface Counting {
  readonly id: CountedResource
  readonly counts: Partial<Record<CacheResult, number>>
}

export class ReadCounts {
  #counting = new Map<string, Counting>()

  add(id: CountedResource, result: CacheResult, more = 1): void {
    const key = countedKey(id)
    let known = this.#counting.get(key)
    if (known === undefined) {
      known = { id, counts: {} }
      this.#counting.set(key, known)
    }
    known.counts[result] = (known.counts[result] ?? 0) + more
  }

  addAll(counted: readonly ReadCount[]): void {
    for (const { id, counts } of counted) {
      for (const [result, more] of Object.entries(counts)) this.add(id, result as CacheResult, more)
    }
  }

  of(id: CountedResource): ReadCount['counts'] {
    return this.#counting.get(countedKey(id))?.counts ?? {}
  }

  /** What was counted since the last call. */
  take(): readonly ReadCount[] {
    if (this.#counting.size === 0) return []
    const counted = [...this.#counting.values()]
    this.#counting = new Map()
    return counted
  }

  /** Forgets resources that are not kept any more. */
  retain(kept: Iterable<CountedResource>): void {
    const keys = new Set(Array.from(kept, countedKey))
    for (const key of this.#counting.keys()) if (!keys.has(key)) this.#counting.delete(key)
  }
}

export function countedKey({ cluster, group, version, resource }: CountedResource): string {
  return `${cluster}/${group}/${version}/${resource}`
}
