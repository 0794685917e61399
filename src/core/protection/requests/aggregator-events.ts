// What the aggregator of one cell tells of its work, for metrics: each aggregator has an object of these to itself.

export interface AggregatorEvents {
  /**
   * One protector was counted, and written where something had changed.
   * @param error '' = none; otherwise the reason of the Status (`Conflict`), `NoAnswer`, or `BadSelector`
   */
  reconciled(namespace: string, error: string, durationMs: number): void
  /** A protector is to be counted anew, after the aggregation rate; not told when it already was. */
  enqueued(namespace: string, kind: EnqueueKind): void
  /** It is known which protectors an event concerns. @param namespace '' = all of them */
  handled(namespace: string, kind: HandledKind, durationMs: number): void
  /** Protectors that wait for the stream to go on, and for how long the one that came first has waited. */
  pool(size: number, oldestMs: number): void
  /** The stream went on. @param latenciesMs of each protector that waited @param periodMs since the last time */
  drained(latenciesMs: readonly number[], periodMs: number): void
  /** The update trigger wrote its pod. @param error as in `reconciled` */
  trigger(event: 'create' | 'update', error: string): void
}

/** Why a protector is counted anew. */
export type EnqueueKind =
  | 'Pod'
  | 'PodProtector'
  /** All pods were read anew. */
  | 'List'
  /** The stream went on, and the protector has deletions that are not yet seen to have happened. */
  | 'NextEvent'
  /** A pod has been ready for minReadySeconds. */
  | 'MinReady'

/** Of what comes from outside; a pod that has been ready for long enough does not. */
export type HandledKind = Exclude<EnqueueKind, 'MinReady'>

/** Tells nobody. */
export const NO_AGGREGATOR_EVENTS: AggregatorEvents = {
  reconciled: () => undefined,
  enqueued: () => undefined,
  handled: () => undefined,
  pool: () => undefined,
  drained: () => undefined,
  trigger: () => undefined,
}
