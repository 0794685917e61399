// What an aggregator is made of, and what it tells of itself.

import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { Clock, Logger } from '../../api/ports/ports.ts'
import type { CellClocks } from '../../core/protection/clocks/cell-clock.ts'
import type { AggregatorEvents } from '../../core/protection/requests/aggregator-events.ts'
import type { ProtectionSettings } from '../../core/protection/requests/protection-settings.ts'
import type { ProtectorTable } from '../../state/protectors.ts'
import type { CellMember } from './member.ts'

export interface PodAggregatorDeps {
  readonly cell: string
  /** Where the PodProtectors are. */
  readonly core: ObjectClient
  /** The clusters that have its pods, as it is now, by name; none = they are not to be counted. */
  members(): readonly CellMember[]
  readonly protectors: ProtectorTable
  /** Whether this replica counts the pods of this cell; asked before each write. */
  isLeader(): boolean
  readonly settings: ProtectionSettings
  readonly clock: Clock
  readonly clocks: CellClocks
  /** In [0, 1). */
  random(): number
  readonly log: Logger
  readonly events: AggregatorEvents
}

/** For people. */
export interface PodAggregatorDescription {
  readonly cell: string
  /** Whose pods are counted; empty when it does not lead. */
  readonly clusters: readonly string[]
  /** It is the one that counts, or is about to. */
  readonly leads: boolean
  /** Since when `current` and `message` are so: milliseconds since the epoch. */
  readonly sinceMs: number
  /** It leads, and the list of pods is complete. */
  readonly active: boolean
  readonly pods: number
  /** resourceVersion up to which pods have been seen; '' = none. */
  readonly resourceVersion: string
  /** Microseconds since the epoch: everything before this has been seen; undefined = not known. */
  readonly streamTime: number | undefined
  /** Whether the watch is up to date. */
  readonly current: boolean
  /** What is wrong; '' = nothing. */
  readonly message: string
  /** Protectors that are to be counted. */
  readonly queued: number
  /** Protectors that wait for the stream to go on. */
  readonly waiting: number
}
