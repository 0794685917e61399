// What the generator reports of its work, for metrics.

import type { GeneratorFinding } from './decision.ts'
import type { GeneratorKind } from './kinds.ts'

/** Called on the main thread, synchronously: they return at once and never throw. */
export interface GeneratorEvents {
  /**
   * A workload was reconciled.
   * @param error '' = none; otherwise the reason of the Status (`Conflict`), `NoAnswer`, `Unclear` (it cannot be determined what
   * the workload needs) or `NoFinalizerInTerminatingSource`
   */
  reconciled(kind: GeneratorKind, namespace: string, error: string, durationMs: number): void
  found(kind: GeneratorKind, namespace: string, finding: GeneratorFinding): void
}
