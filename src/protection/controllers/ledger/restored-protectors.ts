// PodProtectors from a last good state: which pods have one, without availability. If the core cluster is unreachable at
// startup, deletions of unprotected pods pass as usual; for protected ones the failurePolicy decides.

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import type { Labels } from '../../../kube/core/selectors/label-requirement.ts'
import { ProtectorIndex } from '../../core/selectors/protector-index.ts'

/** The saved part of a PodProtector. */
export interface KeptProtector {
  readonly key: string
  readonly namespace: string
  readonly selector: LabelSelector
}

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
