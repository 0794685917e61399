// Reports of the pod protection ledger, for metrics, logs and Events, and of the aggregators, for metrics; they know none of them.

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

/** Reports of the ledger. Called on the main thread, synchronously: they return at once and never throw. */
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

/** Reports of one aggregator, which has an instance of its own. */
export interface AggregatorEvents {
  /**
   * One protector was counted, and written if something had changed.
   * @param error '' = none; otherwise the reason of the Status (`Conflict`), `NoAnswer`, or `BadSelector`
   */
  reconciled(namespace: string, error: string, durationMs: number): void
  /** A protector was queued for a recount; not called when it already was. */
  enqueued(namespace: string, kind: EnqueueKind): void
  /** An event was mapped to the protectors it concerns. @param namespace '' = all of them */
  handled(namespace: string, kind: HandledKind, durationMs: number): void
  /** Protectors waiting for the next event of the stream, and how long the first has waited. */
  pool(size: number, oldestMs: number): void
  /** The stream has advanced. @param latenciesMs of each protector that waited @param periodMs since the last time */
  drained(latenciesMs: readonly number[], periodMs: number): void
  /** The update trigger wrote its pod. @param error as in `reconciled` */
  trigger(event: 'create' | 'update', error: string): void
}

/** Why a protector is counted again. */
export type EnqueueKind =
  | 'Pod'
  | 'PodProtector'
  /** All pods were listed again. */
  | 'List'
  /** The stream has advanced, and the protector has outstanding deletions. */
  | 'NextEvent'
  /** A pod has been ready for minReadySeconds. */
  | 'MinReady'

/** The kinds that are events; MinReady is a timer. */
export type HandledKind = Exclude<EnqueueKind, 'MinReady'>
