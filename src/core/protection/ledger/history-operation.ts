// Operations on admission histories, and their results.

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
  /** The pod will be deleted whatever the result: recorded in any case. */
  readonly force: boolean
}

/** A deletion that takes no available pod as far as is known: recorded, so that it takes none later either. Never refused. */
export interface RecordOperation extends PodOperation {
  readonly type: 'record'
}

export interface ReleaseOperation {
  readonly type: 'release'
  readonly cell: string
  readonly uid: string
  /** Of the bucket as it was written; if it has changed or is gone, nothing is released. */
  readonly startTime: string
}

export type HistoryOperation = ReserveOperation | RecordOperation | ReleaseOperation

export interface OperationResult {
  /** `AlreadyHasBucket`: admitted, and already recorded; `Done`: of records and releases. */
  readonly result: QuotaResult | 'AlreadyHasBucket' | 'Done'
  /** Of the bucket that this operation created; '' = none. */
  readonly startTime: string
  /** For messages: counted pods, */
  readonly count: number
  /** deletions among them that have not been seen to happen, */
  readonly lag: number
  /** and how many pods must stay. All 0 for records and releases. */
  readonly required: number
}
