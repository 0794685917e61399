// The ledger that evaluates deletions in a run: the interface of both algorithms.

import type { ProtectionSettings } from '../../src/process/api/protection-settings.ts'
import type { PodFacts } from '../../src/protection/api/protection.ts'
import type { CoreStore, SeenVersions } from './sim-core.ts'
import type { SimQueue } from './sim-queue.ts'
import type { Scenario } from './sim-scenario.ts'

/** The settings of the product, and rules that can be broken to see that they are needed. */
export interface SimSettings extends ProtectionSettings {
  /** A free pass is forwarded with the resourceVersion of the pod as a precondition. */
  readonly versionPrecondition: boolean
  /** 404 and 409 of upstream are refusals too. */
  readonly releaseWhenGone: boolean
  /** Processes believe that the clocks of API servers are as their own. */
  readonly trustsClocks: boolean
}

export interface SimVerdict {
  readonly outcome: 'admitted' | 'refused' | 'error'
  readonly reason: string
  /** Refused for maxConcurrentLag alone. */
  readonly limited: boolean
  /** No quota was asked of some protector, for the pod was not ready. */
  readonly free: boolean
  readonly seen: ReadonlyMap<string, SeenVersions>
  /** Upstream has refused. */
  release(): void
}

export interface World {
  readonly scenario: Scenario
  readonly settings: SimSettings
  readonly queue: SimQueue
  readonly core: CoreStore
  trace(text: () => string): void
}

/** A replica of the gateway, or of the webhook. */
export interface SimReplica {
  /** Changes when the process restarts. */
  readonly incarnation: number
  readonly up: boolean
  review(cell: string, pod: PodFacts, timeoutMs: number, done: (verdict: SimVerdict) => void): void
}
