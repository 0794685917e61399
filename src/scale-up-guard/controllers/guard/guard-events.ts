// What guards tell: metrics and Events listen.

import type { CompiledGuard } from '../../core/guard/compile-guard.ts'
import type { BackoffCause } from '../../core/guard/guard-status.ts'
import type { CorrectionResult } from './correct-group.ts'

export interface GuardEvents {
  backedOff(guard: CompiledGuard, group: string, cause: BackoffCause, untilMs: number): void
  /** @param text what was done; of what was not, why not */
  corrected(guard: CompiledGuard, group: string, result: CorrectionResult, text: string): void
  /** Groups, and those of them that are backed off. */
  counted(guard: CompiledGuard, groups: number, backedOff: number): void
  /** It is no longer served here. */
  ended(guard: CompiledGuard): void
}
