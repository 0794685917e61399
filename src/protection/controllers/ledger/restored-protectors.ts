// The PodProtectors of a last good state: which pods have one, and nothing of how many are available. While the core cluster is away at a
// start, the deletion of a pod that has none passes as before; of one that has one, the failurePolicy decides.

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import type { Labels } from '../../../kube/core/selectors/label-requirement.ts'
import { ProtectorIndex } from '../../core/selectors/protector-index.ts'

/** What is kept of a PodProtector. */
export interface KeptProtector {
  readonly key: string
  readonly namespace: string
  readonly selector: LabelSelector
}

export class RestoredProtectors {
  readonly #index = new ProtectorIndex()
  readonly #namespaces = new Set<string>()

  /** @param records as they were kept; others are left out */
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
