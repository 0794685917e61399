// Counters of HTTP/2 connections: one plain object per thread, shared by all its connections, read by each
// scrape. A connection adds to a field and does not know about metrics.

/** Only a faulty or hostile peer causes these: adding a kind takes one line here. */
const ABUSE = {
  /** Connections ended with ENHANCE_YOUR_CALM: the peer reset its streams too fast (CVE-2023-44487). */
  rapidReset: 0,
  /** Ended because the peer made us reset its streams too fast (CVE-2025-8671). */
  madeYouReset: 0,
  /** Ended because of too many CONTINUATION frames (CVE-2024-27316). */
  continuationFlood: 0,
  /** Ended because there was no memory left for the head that the peer was sending. */
  openHeads: 0,
  /** Ended because of too many SETTINGS frames (CVE-2019-9515). */
  settingsFlood: 0,
  /** Ended because of too many PING frames (CVE-2019-9512). */
  pingFlood: 0,
  /** Ended because of too many DATA or HEADERS frames without content (CVE-2019-9518). */
  emptyFrames: 0,
  /** Ended because of too many WINDOW_UPDATE frames. */
  windowUpdateFlood: 0,
  /** Field sections that HPACK would expand beyond what a peer may send. */
  hpackBomb: 0,
  /** Field sections above SETTINGS_MAX_HEADER_LIST_SIZE: answered with 431, or the stream was reset. */
  headerListTooLarge: 0,
  /** Streams opened above SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113 section 5.1.2). */
  streamLimit: 0,
  /** Ended because the peer kept data queued without opening its window (CVE-2019-9511, -9517). */
  slowRead: 0,
  /** Ended because the preface or the first SETTINGS did not come in time. */
  slowPreface: 0,
  /** Ended because of too many PRIORITY or PRIORITY_UPDATE frames. */
  priorityFlood: 0,
  /** Ended because of too many frames of unknown types. */
  unknownFrames: 0,
  /** Ended because of TLS records without content, such as KeyUpdate messages; over HTTP/1.1, too. */
  emptyRecords: 0,
  /** Connections ended because the peer broke RFC 9113 or RFC 7541. */
  protocolErrors: 0,
}

const OTHERS = {
  connectionsOpened: 0,
  connectionsClosed: 0,
  goawayReceived: 0,
  goawaySent: 0,
  /** Streams answered with REFUSED_STREAM, by either side. */
  streamsRefused: 0,
  /** Heads that were not sent because they exceed the peer's limit: the request got 431, or the response became 502. */
  headsNotSent: 0,
  /** Connections ended because a PING was not answered in time. */
  pingTimeouts: 0,
  /** Connections of clients drained because they were idle for too long, or no stream was ever opened. */
  idleTimeouts: 0,
  /** Request bodies that continued after the response was complete, however they ended: by END_STREAM, or by a reset from the client or us. */
  lateBodiesTaken: 0,
  lateBodiesLeft: 0,
  lateBodiesCut: 0,
  /** Connections ended because our SETTINGS were not acknowledged in time (RFC 9113 section 6.5.3). */
  settingsTimeouts: 0,
}

/** Running totals since the thread started; they only grow. Server and client connections add to the same fields. */
export type Http2Counters = typeof ABUSE & typeof OTHERS

/** Counters of faulty or hostile peers. */
export type AbuseKind = keyof typeof ABUSE

function isAbuse(field: string): field is AbuseKind {
  return field in ABUSE
}

/** All abuse counters. */
export const ABUSE_KINDS: readonly AbuseKind[] = Object.keys(ABUSE).filter(isAbuse)

/** All zero. */
export function createHttp2Counters(): Http2Counters {
  return { ...ABUSE, ...OTHERS }
}
