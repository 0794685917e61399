// The generator's reports, for metrics.

import type { GeneratorFinding } from './decision.ts'
import type { GeneratorKind } from './kinds.ts'

/** Called on the main thread, synchronously: they return at once and never throw. */
export interface GeneratorEvents {
  /**
   * A workload was reconciled.
   * @param error '' = none; otherwise the reason of the Status (`Conflict`), `NoAnswer`, `Unclear` (what the workload needs can't be
   * determined) or `NoFinalizerInTerminatingSource`
   */
  reconciled(kind: GeneratorKind, namespace: string, error: string, durationMs: number): void
  found(kind: GeneratorKind, namespace: string, finding: GeneratorFinding): void
}
