// One aggregation of one protector: counts its pods, and prunes its admission history by when each deletion in it was first seen.

import type { CellTime } from '../../../gateway/core/clocks/cell-clock.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { afterFailedWrite, type FailedWrite } from '../../../kube/controllers/kernel/object-patch.ts'
import { compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import type { ProtectionSettings } from '../../../process/api/protection-settings.ts'
import type { PodProtector } from '../../api/pod-protector.ts'
import { POD_PROTECTORS } from '../../api/pod-protector-kind.ts'
import { limitsOf } from '../../core/history/cell-history.ts'
import type { HistoryEntry } from '../../core/history/entry.ts'
import { type AggregatedCell, aggregateCell } from '../../core/ledger/aggregate-cell.ts'
import type { CellSnapshot } from '../../core/ledger/prune-history.ts'
import { aggregatePods, isAvailable, type ReadyFor } from '../../core/quota/pod-facts.ts'
import { readyAtLeastMs } from '../../core/quota/ready-time.ts'
import type { CountedPods } from './cell-pods.ts'
import type { SnapshotPod } from './pod-snapshot.ts'

/** Input of a count, all from the same moment. */
interface CountInput {
  readonly cell: string
  readonly pods: CountedPods
  /** Microseconds; undefined = unknown. */
  readonly streamTime: number | undefined
  /** Last event of the stream, microseconds. */
  readonly heardAt: number
  /** The cell was restored to a resourceVersion older than one already counted. */
  readonly restored: boolean
  readonly settings: ProtectionSettings
  /** Wall clock, milliseconds. */
  readonly nowMs: number
  readonly monotonicMs: number
  /** What the clocks of the cell's API servers may show now; undefined = unknown. */
  readonly time: CellTime | undefined
  /** Their proven skew, human-readable. */
  readonly skewMs: number
  /** See CellSnapshot. */
  readonly knownSince: CellSnapshot['knownSince']
}

export interface Counted extends AggregatedCell {
  /** Milliseconds until the next pod will have been ready for minReadySeconds; undefined = none is pending. */
  readonly nextAvailableMs: number | undefined
}

/**
 * Reads the snapshot and its version in one turn of the event loop, so that they match.
 * @throws {SyntaxError} if the selector is invalid
 */
export function countPods(protector: PodProtector, input: CountInput): Counted {
  const { cell, pods, settings, nowMs } = input
  const { selector, aggregationSelector = selector, minReadySeconds } = protector.spec
  const namespace = protector.metadata.namespace ?? ''
  const readyFor = readyForIn(input)
  const counts = aggregatePods(pods.select(namespace, aggregationSelector), minReadySeconds, readyFor)
  const snapshot: CellSnapshot = {
    resourceVersion: pods.version,
    streamTime: input.streamTime,
    heardAt: input.heardAt,
    restored: input.restored,
    skewMs: input.skewMs,
    ...(input.knownSince !== undefined && { knownSince: input.knownSince }),
    stateOf: stateIn(pods, namespace, aggregationSelector, minReadySeconds, readyFor),
  }
  const limits = limitsOf(protector, settings)
  const { reservationTimeoutMs } = settings
  const result = aggregateCell(
    protector,
    cell,
    counts,
    snapshot,
    limits,
    reservationTimeoutMs,
    Math.round(nowMs * 1000),
  )
  return { ...result, nextAvailableMs: counts.nextAvailableMs }
}

/** From when its readiness was first seen, or from the API server's own timestamp, whichever is longer ago. */
function readyForIn({ monotonicMs, time }: CountInput): ReadyFor<SnapshotPod> {
  return (pod) => Math.max(monotonicMs - pod.readySeenMs, readyAtLeastMs(pod, time))
}

/** A pod that this protector doesn't count (any longer) is `alive`. */
function stateIn(
  pods: CountedPods,
  namespace: string,
  selector: LabelSelector,
  minReadySeconds: number,
  readyFor: ReadyFor<SnapshotPod>,
): CellSnapshot['stateOf'] {
  const compiled = compileSelector(selector)
  return (uid) => {
    const pod = pods.get(uid)
    if (pod === undefined) return 'absent'
    if (pod.terminating) return 'terminating'
    const counted = pod.namespace === namespace && compiled.matches(pod.labels)
    return counted && isAvailable(pod, minReadySeconds, readyFor) ? 'available' : 'alive'
  }
}

/** What to do after a failed count. Never rejects. */
export async function afterError(core: ObjectClient, protector: PodProtector, error: unknown): Promise<FailedWrite> {
  // It is counted again when its selector is fixed.
  if (error instanceof SyntaxError) return { outcome: 'done' }
  return await afterFailedWrite({ client: core, kind: POD_PROTECTORS }, { ...protector }, error)
}

/**
 * When the aggregator first saw each admitted deletion, by its own clock. The deadline of a deletion is counted from
 * then, so that the clocks of other replicas don't matter.
 */
export class AdmissionTimes {
  /** By protector, then by entry. */
  readonly #known = new Map<string, Known>()

  /**
   * For one aggregation of one protector: drops entries that it doesn't ask for.
   * @param nowMicros the time for new entries
   */
  of(protector: string, nowMicros: number): NonNullable<CellSnapshot['knownSince']> {
    const before = this.#known.get(protector)
    const next: Known = { entries: new Map(), stamps: new Map() }
    return (entry) => {
      const since = sinceIn(before, entry) ?? nowMicros
      next.entries.set(keyOf(entry), since)
      next.stamps.set(entry.end, Math.max(since, next.stamps.get(entry.end) ?? since))
      this.#known.set(protector, next)
      return since
    }
  }

  forget(protector: string): void {
    this.#known.delete(protector)
  }
}

interface Known {
  /** By uid and time. */
  readonly entries: Map<string, number>
  /** By time alone: a joined entry has the time of its last deletion. */
  readonly stamps: Map<number, number>
}

function sinceIn(before: Known | undefined, entry: HistoryEntry): number | undefined {
  const exact = before?.entries.get(keyOf(entry))
  return exact ?? (entry.uid === '' ? before?.stamps.get(entry.end) : undefined)
}

function keyOf({ uid, end }: HistoryEntry): string {
  return `${uid}/${end}`
}
