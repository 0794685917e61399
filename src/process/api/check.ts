// What a part of the process says about its health.

/** One health check, shown by /livez or /readyz. */
export interface Check {
  /** Lower-case words with dashes; clients exclude the check by this name. */
  readonly name: string
  readonly ok: boolean
  /** Why the check fails. */
  readonly message: string
  /** Something unusual that is not a failure. Default: nothing. */
  readonly note?: string
}
