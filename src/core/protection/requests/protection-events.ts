// What the ledger of pod protection tells of itself: for metrics, logs and Events. The ledger knows of none of these.

import type { ProtectionRequest, ProtectionVerdict } from '../../../api/ports/protection.ts'

/** What came of one attempt to write a batch. */
export type BatchResult =
  | 'written'
  /** Nothing of it changes the object: nothing was written. */
  | 'unchanged'
  /** Somebody else wrote first: it is tried again. */
  | 'conflict'
  /** The PodProtector is gone: its pods are free. */
  | 'gone'
  | 'error'

/** Why a request to a batch has no result; '' = it has one. */
export type SubmitError = '' | 'expired' | 'failed' | 'stopped'

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
  /** A batch is written, or given up, after so many attempts that were in vain. */
  batch(durationMs: number, retries: number): void
  /** An operation has its answer, after so many conflicts. */
  submitted(error: SubmitError, durationMs: number, retries: number): void
  /** Reservations were given back, or will be with the next batch: upstream refused, another protector did, or it was too late. */
  released(count: number): void
  /** What is known of the PodProtectors follows one change of them, or a list of all. */
  indexed(durationMs: number): void
  /** PodProtectors of which a part cannot be read: how many there are now. @param found one was just found to be such */
  malformed(count: number, found: boolean): void
  /** Whether what is known of the PodProtectors is the current state; `message` says what is wrong. */
  following(current: boolean, message: string): void
}

/** For who listens to some only. */
export const NO_PROTECTION_EVENTS: ProtectionEvents = {
  reviewed: () => undefined,
  executed: () => undefined,
  batch: () => undefined,
  submitted: () => undefined,
  released: () => undefined,
  indexed: () => undefined,
  malformed: () => undefined,
  following: () => undefined,
}
