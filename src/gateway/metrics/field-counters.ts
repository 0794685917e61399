// The metric for each field of the plain counter objects. The compiler requires a line for each field.

import { ABUSE_KINDS, type AbuseKind, type Http2Counters } from '../../http2/counters.ts'
import {
  EARLY_ANSWERS,
  HTTP2_ABUSE,
  HTTP2_CLOSED,
  HTTP2_GOAWAY,
  HTTP2_HEADS_NOT_SENT,
  HTTP2_OPENED,
  HTTP2_REFUSED,
  HTTP2_TIMEOUTS,
  UPSTREAM_CLOSED,
  UPSTREAM_ENDED_BY_REQUESTS,
  UPSTREAM_FAILED,
  UPSTREAM_OPENED,
} from './descriptors.ts'
import type { Metric } from './metric.ts'
import type { SeriesStore } from './series.ts'
import type { UpstreamCounters } from './upstream-counters.ts'

/** The metric, and the value of its last label if it has another one besides the object's name. */
type Counted = readonly [metric: Metric, label?: string]
type FieldCounters<Fields extends string> = Readonly<Record<Fields, Counted>>

const HTTP2: FieldCounters<Exclude<keyof Http2Counters, AbuseKind>> = {
  connectionsOpened: [HTTP2_OPENED],
  connectionsClosed: [HTTP2_CLOSED],
  goawayReceived: [HTTP2_GOAWAY, 'received'],
  goawaySent: [HTTP2_GOAWAY, 'sent'],
  streamsRefused: [HTTP2_REFUSED],
  headsNotSent: [HTTP2_HEADS_NOT_SENT],
  pingTimeouts: [HTTP2_TIMEOUTS, 'ping'],
  idleTimeouts: [HTTP2_TIMEOUTS, 'headers'],
  settingsTimeouts: [HTTP2_TIMEOUTS, 'settings'],
  lateBodiesTaken: [EARLY_ANSWERS, 'taken'],
  lateBodiesLeft: [EARLY_ANSWERS, 'left'],
  lateBodiesCut: [EARLY_ANSWERS, 'cut'],
}

const UPSTREAM: FieldCounters<keyof UpstreamCounters> = {
  opened: [UPSTREAM_OPENED],
  connectFailed: [UPSTREAM_FAILED],
  closedByAge: [UPSTREAM_CLOSED, 'age'],
  closedByIdle: [UPSTREAM_CLOSED, 'idle'],
  closedByGoaway: [UPSTREAM_CLOSED, 'goaway'],
  closedByLoss: [UPSTREAM_CLOSED, 'loss'],
  closedBySettingsTimeout: [UPSTREAM_CLOSED, 'settings-timeout'],
  closedByPingTimeout: [UPSTREAM_CLOSED, 'ping-timeout'],
  closedByDrain: [UPSTREAM_CLOSED, 'drain'],
  endedByRequests: [UPSTREAM_ENDED_BY_REQUESTS],
}

/** Writes the counters of one side's connections. */
export function writeHttp2(store: SeriesStore, side: 'client' | 'upstream', counters: Http2Counters): void {
  for (const kind of ABUSE_KINDS) store.set(store.table(HTTP2_ABUSE).at(side, kebabCase(kind)), counters[kind])
  writeFields(store, side, HTTP2, counters)
}

/** Writes the counters of one endpoint's connections. */
export function writeUpstream(store: SeriesStore, endpoint: string, counters: UpstreamCounters): void {
  writeFields(store, endpoint, UPSTREAM, counters)
}

function writeFields<Fields extends string>(
  store: SeriesStore,
  name: string,
  fields: FieldCounters<Fields>,
  counters: Readonly<Record<Fields, number>>,
): void {
  for (const field in fields) {
    const [metric, label = ''] = fields[field]
    store.set(store.table(metric).at(name, label), counters[field])
  }
}

/** `rapidReset` -> `rapid-reset`. */
function kebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
