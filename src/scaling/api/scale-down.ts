// Reported by the request path about a scale-down governed by a ScaleDownPolicy: plain data, because it crosses threads.

/**
 * Steered: its victims have costs. Nothing: no cost needed, because there is no choice. Unsteerable: a kind or state in which costs have no effect.
 * Unavailable: no decision was possible. Reverted: the write failed, and the costs were removed.
 */
export type ScaleDownOutcome = 'Steered' | 'Nothing' | 'Shadow' | 'Unsteerable' | 'Unavailable' | 'Reverted'

export interface ScaleDownReport {
  /** The policy's namespace. */
  readonly namespace: string
  readonly policy: string
  readonly cluster: string
  /** `deployments/web`. */
  readonly workload: string
  readonly from: number
  readonly to: number
  readonly outcome: ScaleDownOutcome
  /** Why, for people; '' = self-explanatory. */
  readonly message: string
  readonly victims: readonly string[]
  readonly conflicts: readonly string[]
  /** Milliseconds since the epoch. */
  readonly atMs: number
}
