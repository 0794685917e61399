// What HTTP/2 connections count: one plain object per thread, shared by all its connections, read when somebody
// scrapes. A connection adds to a field and knows nothing of metrics.

/** Running totals since the thread started; they only grow. Server and client connections add to the same fields. */
export interface Http2Counters {
  /** Connections ended with ENHANCE_YOUR_CALM: the peer reset its streams too fast (CVE-2023-44487). */
  rapidReset: number
  /** Ended because the peer made us reset its streams too fast (CVE-2025-8671). */
  madeYouReset: number
  /** Ended because of too many CONTINUATION frames (CVE-2024-27316). */
  continuationFlood: number
  /** Ended because of too many SETTINGS frames (CVE-2019-9515). */
  settingsFlood: number
  /** Ended because of too many PING frames (CVE-2019-9512). */
  pingFlood: number
  /** Ended because of too many DATA or HEADERS frames without content (CVE-2019-9518). */
  emptyFrames: number
  /** Ended because of too many WINDOW_UPDATE frames. */
  windowUpdateFlood: number
  /** Field sections that HPACK would blow up beyond what a peer may send. */
  hpackBomb: number
  /** Field sections above SETTINGS_MAX_HEADER_LIST_SIZE: answered with 431, or the stream was reset. */
  headerListTooLarge: number
  /** Streams opened above SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113 section 5.1.2). */
  streamLimit: number
  /** Ended because the peer kept data queued without opening its window (CVE-2019-9511, -9517). */
  slowRead: number
  /** Ended because the preface or the first SETTINGS did not come in time. */
  slowPreface: number
  /** Ended because of too many PRIORITY or PRIORITY_UPDATE frames. */
  priorityFlood: number
  /** Ended because of too many frames of unknown types. */
  unknownFrames: number
  /** Connections ended because the peer broke RFC 9113 or RFC 7541. */
  protocolErrors: number
  connectionsOpened: number
  connectionsClosed: number
  goawayReceived: number
  goawaySent: number
  /** Streams answered with REFUSED_STREAM, by either side. */
  streamsRefused: number
  /** Heads that were not sent, because the peer takes none of their size: its request got 431, or its answer 502. */
  headsNotSent: number
  /** Connections ended because a PING was not answered in time. */
  pingTimeouts: number
  /** Connections of clients drained because no stream was open for too long, or none was ever opened. */
  idleTimeouts: number
  /** Connections ended because our SETTINGS were not acknowledged in time (RFC 9113 section 6.5.3). */
  settingsTimeouts: number
}

/** The fields that count what only a broken or hostile peer does. */
export type AbuseKind =
  | 'rapidReset'
  | 'madeYouReset'
  | 'continuationFlood'
  | 'settingsFlood'
  | 'pingFlood'
  | 'emptyFrames'
  | 'windowUpdateFlood'
  | 'hpackBomb'
  | 'headerListTooLarge'
  | 'streamLimit'
  | 'slowRead'
  | 'slowPreface'
  | 'priorityFlood'
  | 'unknownFrames'
  | 'protocolErrors'

/** All at zero. */
export function createHttp2Counters(): Http2Counters {
  return {
    rapidReset: 0,
    madeYouReset: 0,
    continuationFlood: 0,
    settingsFlood: 0,
    pingFlood: 0,
    emptyFrames: 0,
    windowUpdateFlood: 0,
    hpackBomb: 0,
    headerListTooLarge: 0,
    streamLimit: 0,
    slowRead: 0,
    slowPreface: 0,
    priorityFlood: 0,
    unknownFrames: 0,
    protocolErrors: 0,
    connectionsOpened: 0,
    connectionsClosed: 0,
    goawayReceived: 0,
    goawaySent: 0,
    streamsRefused: 0,
    headsNotSent: 0,
    pingTimeouts: 0,
    idleTimeouts: 0,
    settingsTimeouts: 0,
  }
}
