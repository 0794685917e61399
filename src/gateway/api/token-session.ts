// Sessions at OpenID providers, as tokens and logouts name them.

/** Whose token it is, as its issuer says. */
export interface TokenSession {
  /** A digest of where the keys of the issuer come from: another source may say the same names of other people. */
  readonly source: string
  /** Those that the issuer's entry accepts. */
  readonly audiences: readonly string[]
  /** '' = the token names no session. */
  readonly sid: string
  readonly sub: string
  readonly issuedSeconds: number
}

/** A logout, as the issuer has told of it. */
export interface EndedSession extends Pick<TokenSession, 'source' | 'audiences' | 'sid'> {
  /** URL of the issuer, for people. */
  readonly issuer: string
  /** '' = it names no user; then it has a `sid`. */
  readonly sub: string
  /** Whole seconds since the epoch. */
  readonly endedSeconds: number
}

/**
 * Where a logout is in force: `here` = in this process alone, because its objects are files; `failed` = likewise, because it could not be written;
 * `full` = nowhere, because too many are remembered.
 */
export type LogoutOutcome = 'everywhere' | 'here' | 'failed' | 'full'
