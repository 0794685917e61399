// A user of a cluster as a gateway thread has seen it lately: plain data, without anything of its credential.

import type { TokenSession } from './token-session.ts'

export interface IdentitySeen {
  readonly cluster: string
  readonly user: string
  /**
   * `certificate`; URL of the issuer that vouches for its tokens; `cluster`: its tokens are reviewed there; `federation:NAME`: that cluster has handed its
   * requests over.
   */
  readonly by: string
  /** Milliseconds since the epoch: first and latest request. */
  readonly sinceMs: number
  readonly lastMs: number
  /** When the latest of its credentials expires; 0 = only the cluster knows. */
  readonly expiresMs: number
  /** Watches, logs and upgraded connections that are open. */
  readonly open: number
}

/** What the gateway knows of a credential that it has accepted. */
export interface CredentialOrigin {
  /** As IdentitySeen.by. */
  readonly by: string
  /** As IdentitySeen.expiresMs. */
  readonly expiresMs: number
  /** Absent = a logout at its issuer does not end it. */
  readonly session?: TokenSession
}
