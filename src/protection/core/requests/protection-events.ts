// Reports of the pod protection ledger, for metrics, logs and Events; the ledger itself knows none of them.

import type { ProtectionRequest, ProtectionVerdict } from '../../api/protection.ts'

/** The outcome of one attempt to write a batch. */
export type BatchResult =
  | 'written'
  /** The batch changes nothing, so nothing was written. */
  | 'unchanged'
  /** Another writer was first: it is retried. */
  | 'conflict'
  /** The PodProtector is gone: its pods may be deleted. */
  | 'gone'
  | 'error'

/** Why a request to a batch has no result; '' = it has one. */
type SubmitError = '' | 'expired' | 'failed' | 'stopped'

/** Called on the main thread, synchronously: they return at once and never throw. */
export interface ProtectionEvents {
  /** A request has its verdict. @param protectors `namespace/name` of all that select the pod, sorted */
  reviewed(
    request: ProtectionRequest,
    verdict: ProtectionVerdict,
    protectors: readonly string[],
    durationMs: number,
  ): void
  /**
   * One attempt to write.
   * @param key `namespace/name` of the protector @param size operations in the batch
   * @param error '' = none; otherwise the reason of the Status (`Conflict`), or `NoAnswer`
   */
  executed(key: string, size: number, result: BatchResult, error: string, durationMs: number): void
  /** A batch was written or given up, after `retries` failed attempts. */
  batch(durationMs: number, retries: number): void
  /** An operation was answered, after `retries` conflicts. */
  submitted(error: SubmitError, durationMs: number, retries: number): void
  /** Reservations are released with the next batch: upstream or another protector refused, or the write came too late. */
  released(count: number): void
  /** The index of PodProtectors was updated, after a change or a list. */
  indexed(durationMs: number): void
  /** Current number of malformed PodProtectors. @param found whether one was just found */
  malformed(count: number, found: boolean): void
  /** Whether the watch of PodProtectors is current; `message` says what is wrong. */
  following(current: boolean, message: string): void
}
