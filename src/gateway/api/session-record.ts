// What is known of a session over joined connections besides the request that opened it: exec, attach, port-forward, and what else is upgraded.

/** Which side closed its connection first; the gateway when it stops, or when the user is revoked or over a limit. */
export type SessionEnd = 'client' | 'upstream' | 'gateway'

/** What is told of a recording. */
export interface RecordingReport {
  /** Name of its file; '' = there is none. */
  readonly recording: string
  /** Why it is not whole, or there is none; '' = it is whole. */
  readonly incomplete: string
  /** How the command ended, as upstream has told the client; '' = unknown. */
  readonly outcome: string
}

/** Begins with upstream's 101. Its bytes are those of the RequestRecord. */
export interface SessionRecord {
  /** As answered by upstream: `websocket v5.channel.k8s.io`, `SPDY/3.1 v4.channel.k8s.io`. */
  readonly protocol: string
  /** '' = it has not ended. */
  endedBy: SessionEnd | ''
  /** Set at the end of one that was to be recorded. */
  report: RecordingReport | undefined
}
