// Events of guards, for metrics and Kubernetes Events.

import type { CompiledGuard } from '../../core/guard/compile-guard.ts'
import type { BackoffCause } from '../../core/guard/guard-status.ts'
import type { CorrectionResult } from './correct-group.ts'

export interface GuardEvents {
  backedOff(guard: CompiledGuard, group: string, cause: BackoffCause, untilMs: number): void
  /** @param text what was done, or why it was not */
  corrected(guard: CompiledGuard, group: string, result: CorrectionResult, text: string): void
  /** Groups, and how many of them are backed off. */
  counted(guard: CompiledGuard, groups: number, backedOff: number): void
  /** No longer served here. */
  ended(guard: CompiledGuard): void
}
