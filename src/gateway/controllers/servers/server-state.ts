// State of a server whose addresses are followed.

import type { ServerFact } from '../../core/status/status-facts.ts'

/** Results of the look-ups of one server. */
export interface LookUpCounts {
  found: number
  /** Neither an address nor an error. */
  empty: number
  error: number
}

export interface FollowedServerState extends ServerFact {
  readonly cluster: string
  readonly counts: Readonly<LookUpCounts>
}
