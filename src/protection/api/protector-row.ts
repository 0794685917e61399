// A PodProtector in a cell at a glance, as the dashboard shows it.

export interface ProtectorRow {
  readonly namespace: string
  readonly name: string
  readonly minAvailable: number
  readonly available: number
  /** Deletions that were admitted but not counted yet. */
  readonly pending: number
  /** Pods that may be deleted now. */
  readonly mayGo: number
  /** Names of pods that cannot be deleted, if this replica counts them. */
  readonly stuck: readonly string[]
  /** Number of pods that cannot be deleted. */
  readonly stuckCount: number
  readonly fault: string
}
