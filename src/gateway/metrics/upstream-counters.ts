// Counters of one endpoint's connections: a plain object that the pool adds to and the metrics read.

/** Running totals of one endpoint's connections since the thread started; they only grow. */
export interface UpstreamCounters {
  /** Connections that became usable. */
  opened: number
  /** Attempts that failed: refused, timed out, no TLS, no h2. */
  connectFailed: number
  /** Closed because they reached their maximum age. */
  closedByAge: number
  /** Closed because they were idle. */
  closedByIdle: number
  /** Closed because upstream sent GOAWAY. */
  closedByGoaway: number
  /** Broken: reset, ended, or a connection error of either side. */
  closedByLoss: number
  /** Closed because our SETTINGS were not acknowledged in time. */
  closedBySettingsTimeout: number
  /** Closed because a PING was not answered in time. */
  closedByPingTimeout: number
  /** Closed because the endpoint or its credential was removed, or the gateway stopped. */
  closedByDrain: number
  /** Connections probably broken by a request of some source; also counted in one of the above. */
  endedByRequests: number
}

/** All at zero. */
export function createUpstreamCounters(): UpstreamCounters {
  return {
    opened: 0,
    connectFailed: 0,
    closedByAge: 0,
    closedByIdle: 0,
    closedByGoaway: 0,
    closedByLoss: 0,
    closedBySettingsTimeout: 0,
    closedByPingTimeout: 0,
    closedByDrain: 0,
    endedByRequests: 0,
  }
}
