// Dependencies of an aggregator, and its description.

import type { CellClocks } from '../../../gateway/core/clocks/cell-clock.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import type { Leading } from '../../../kube/controllers/kernel/leadership.ts'
import type { ProtectionSettings } from '../../../process/api/protection-settings.ts'
import type { AggregatorEvents } from '../../core/requests/protection-events.ts'
import type { ProtectorTable } from '../../state/protectors.ts'
import type { CellMember } from './member.ts'

export interface PodAggregatorDeps {
  readonly cell: string
  /** API server of the PodProtectors. */
  readonly core: ObjectClient
  /** The clusters that currently hold the cell's pods, by name; none = the pods are not counted. */
  members(): readonly CellMember[]
  readonly protectors: ProtectorTable
  /** Elects the replica that counts the pods of this cell. */
  readonly leadership: Leading
  readonly settings: ProtectionSettings
  readonly clock: Clock
  readonly clocks: CellClocks
  /** In [0, 1). */
  random(): number
  readonly log: Logger
  readonly events: AggregatorEvents
}

/** For display. */
export interface PodAggregatorDescription {
  readonly cell: string
  /** The clusters whose pods are counted; empty unless it leads. */
  readonly clusters: readonly string[]
  /** This replica counts, or is about to. */
  readonly leads: boolean
  /** When `current` or `message` last changed: milliseconds since the epoch. */
  readonly sinceMs: number
  /** It leads, and the list of pods is complete. */
  readonly active: boolean
  readonly pods: number
  /** resourceVersion up to which pods have been seen; '' = none. */
  readonly resourceVersion: string
  /** Stream time, microseconds since the epoch: everything before it has been seen; undefined = unknown. */
  readonly streamTime: number | undefined
  /** Whether the watch is up to date. */
  readonly current: boolean
  /** The current problem; '' = none. */
  readonly message: string
  /** Protectors queued for counting. */
  readonly queued: number
  /** Protectors waiting for the next event of the stream. */
  readonly waiting: number
}
