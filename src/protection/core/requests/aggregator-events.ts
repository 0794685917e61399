// Reports of one cluster's aggregator, for metrics. Each aggregator has its own instance.

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
