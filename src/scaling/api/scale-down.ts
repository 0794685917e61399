// What the request path tells of a scale-down that a ScaleDownPolicy was asked about: plain data, because it crosses threads.

/**
 * Steered: its victims have costs. Nothing: no cost is needed, because nothing is to be chosen. Unsteerable: of a kind or in a state in which
 * costs decide nothing. Unavailable: nobody could choose. Reverted: the write failed, and the costs are taken back.
 */
export type ScaleDownOutcome = 'Steered' | 'Nothing' | 'Shadow' | 'Unsteerable' | 'Unavailable' | 'Reverted'

export interface ScaleDownReport {
  /** Of the policy. */
  readonly namespace: string
  readonly policy: string
  readonly cluster: string
  /** `deployments/web`. */
  readonly workload: string
  readonly from: number
  readonly to: number
  readonly outcome: ScaleDownOutcome
  /** Why, for people; '' = it speaks for itself. */
  readonly message: string
  readonly victims: readonly string[]
  readonly conflicts: readonly string[]
  /** Milliseconds since the epoch. */
  readonly atMs: number
}
