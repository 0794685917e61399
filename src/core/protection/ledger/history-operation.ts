// What can be done to admission histories, and what comes of it.

import type { QuotaPod, QuotaResult } from '../quota/quota.ts'

export interface PodOperation {
  readonly cell: string
  readonly uid: string
  /** '' = not kept. */
  readonly name: string
  /** Of the pod as it was read; '' = not known. */
  readonly resourceVersion: string
}

export interface ReserveOperation extends PodOperation {
  readonly type: 'reserve'
  readonly pod: QuotaPod
  /** It will be deleted whatever the result says: recorded in any case. */
  readonly force: boolean
}

/** A deletion that takes nothing as far as is known: recorded so that it does not take anything later. Never refused. */
export interface RecordOperation extends PodOperation {
  readonly type: 'record'
}

export interface ReleaseOperation {
  readonly type: 'release'
  readonly cell: string
  readonly uid: string
  /** Of the bucket as it was written; when it has changed since, or is gone, nothing is released. */
  readonly startTime: string
}

export type HistoryOperation = ReserveOperation | RecordOperation | ReleaseOperation

export interface OperationResult {
  /** `AlreadyHasBucket`: admitted, and recorded before; `Done`: of notes and releases. */
  readonly result: QuotaResult | 'AlreadyHasBucket' | 'Done'
  /** Of the bucket that this operation made; '' = it made none, and holds nothing. */
  readonly startTime: string
  /** For messages: pods that were counted, */
  readonly count: number
  /** deletions among them that are not seen yet, */
  readonly lag: number
  /** and how many have to stay. All 0 for notes and releases. */
  readonly required: number
}
