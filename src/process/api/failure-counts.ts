// Failed credentials by address, as the ports of the main thread see them.

/** Failures of addresses, as this process knows them. */
export interface FailureCounts {
  /** A credential of this address was rejected. @param credential its identifier; repetitions count once */
  failed(source: string, credential: string): void
  /** How long the address is still blocked, in whole seconds, with jitter; 0 = not blocked. */
  waitSeconds(source: string): number
}
