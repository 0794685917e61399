// How well all workloads together are protected: sums over all PodProtectors, updated on each change.

import type { PodProtector } from '../../api/pod-protector.ts'
import { added, monitorGauges, NO_SUMS, type ProtectorSums, sumsOf } from '../../core/quota/protector-sums.ts'
import type { ProtectorTable } from '../../state/protectors.ts'

export class ProtectorMonitor {
  #sums = NO_SUMS
  readonly #parts = new Map<string, ProtectorSums>()

  get sums(): ProtectorSums {
    return this.#sums
  }

  /** @param key `namespace/name` */
  put(key: string, protector: PodProtector): void {
    const part = sumsOf(protector)
    this.remove(key)
    this.#parts.set(key, part)
    this.#sums = added(this.#sums, part, 1)
  }

  remove(key: string): void {
    const part = this.#parts.get(key)
    if (part === undefined) return
    this.#parts.delete(key)
    this.#sums = added(this.#sums, part, -1)
  }

  /** See protection/core/quota/protector-sums.ts. */
  gauges(): ReadonlyMap<string, number> {
    return monitorGauges(this.#sums)
  }
}

/** Starts monitoring the table. @returns a function that stops it */
export function monitorProtectors(monitor: ProtectorMonitor, table: ProtectorTable): () => void {
  for (const { key, protector } of table.values()) monitor.put(key, protector)
  return table.onChange(({ key, protector }, gone) => {
    if (gone) monitor.remove(key)
    else monitor.put(key, protector)
  })
}
