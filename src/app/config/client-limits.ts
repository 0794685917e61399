// The limits for clients: what each may send and how long it may take, what all of them together may hold, and when a connection ends.

import { bytesBetween, durationBetween, integerBetween, numberBetween } from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface ClientLimitsConfig {
  readonly maxHeaderBytes: number
  readonly maxConcurrentStreams: number
  readonly headerTimeoutMs: number
  readonly handshakeTimeoutMs: number
  /** Over HTTP/2; over HTTP/1.1 it is `headerTimeoutMs`. */
  readonly firstRequestTimeoutMs: number
  /** Of the process; 0 = any number. */
  readonly maxConnections: number
  /** Of the process; 0 = half of `maxConnections`. */
  readonly maxUnauthenticatedConnections: number
  /** Of an address, in a minute; 0 = they are not counted. */
  readonly maxAuthenticationFailures: number
  /** The longest time for which an address is blocked. */
  readonly authenticationFailureBlockMs: number
  readonly idleTimeoutMs: number
  /** For each gateway thread; 0 = any number. */
  readonly maxConnectionsPerAddress: number
  /** Without those that are long-running; of the process; 0 = any number. */
  readonly maxRequestsInflight: number
  /** With other long-running requests; of the process; 0 = any number. */
  readonly maxWatches: number
  /** Of large heads, bodies, and answers that clients have not taken; of the process; 0 = any number. */
  readonly maxBufferedBytes: number
  /** A tenth more or less; 0 = any age. */
  readonly maxConnectionAgeMs: number
  /** Part of the HTTP/2 requests, 0 to 0.02. */
  readonly goawayChance: number
}

/** Settings whose values have the same names, without the unit. */
type TimeName =
  | 'headerTimeout'
  | 'handshakeTimeout'
  | 'firstRequestTimeout'
  | 'authenticationFailureBlock'
  | 'idleTimeout'
  | 'maxConnectionAge'
type PlainName = Exclude<keyof ClientLimitsConfig, `${TimeName}Ms`>

const HOUR = 3_600_000
/** As kube-apiserver. */
const MOST_GOAWAY_CHANCE = 0.02

/** Rows of the table of settings, in the order of help. */
export const CLIENT_LIMITS_TABLE: { readonly [Name in PlainName]: Setting<ClientLimitsConfig[Name]> } & Readonly<
  Record<TimeName, Setting<number>>
> = {
  maxHeaderBytes: setting(
    'maxHeaderBytes',
    '<bytes>',
    '1048576',
    bytesBetween(4096, 64 * 1024 * 1024),
    'largest request head',
  ),
  maxConcurrentStreams: setting(
    'maxConcurrentStreams',
    '<n>',
    '250',
    integerBetween(1, 100_000),
    'requests that one HTTP/2 connection may have open',
  ),
  headerTimeout: setting(
    'headerTimeout',
    '<duration>',
    '10s',
    durationBetween(100, HOUR),
    'how long a client may take to send a request head',
  ),
  handshakeTimeout: setting(
    'handshakeTimeout',
    '<duration>',
    '10s',
    durationBetween(100, HOUR),
    'how long a client may take to begin the TLS handshake, and from its turn on to complete it',
  ),
  idleTimeout: setting(
    'idleTimeout',
    '<duration>',
    '2m',
    durationBetween(1_000, 24 * HOUR),
    'how long an idle connection stays open; before its first request --first-request-timeout at most',
  ),
  firstRequestTimeout: setting(
    'firstRequestTimeout',
    '<duration>',
    '30s',
    durationBetween(1_000, HOUR),
    'how long an HTTP/2 connection stays open without a first request; over HTTP/1.1 --header-timeout',
  ),
  maxConnections: setting(
    'maxConnections',
    '<n>',
    '20000',
    integerBetween(0, 10_000_000),
    'connections of clients, divided by the threads; beyond, the user with most of them loses one; 0: any number',
  ),
  maxUnauthenticatedConnections: setting(
    'maxUnauthenticatedConnections',
    '<n>',
    '4000',
    integerBetween(0, 10_000_000),
    'those of them, half at most, that have not sent a request with a valid credential; beyond, the address with most loses one; 0: half of all',
  ),
  maxAuthenticationFailures: setting(
    'maxAuthenticationFailures',
    '<n>',
    '10',
    integerBetween(0, 1_000_000),
    'credentials and TLS handshakes of one address that may fail in a minute; then it is blocked; 0: they are not counted',
  ),
  authenticationFailureBlock: setting(
    'authenticationFailureBlock',
    '<duration>',
    '5m',
    durationBetween(1_000, 24 * HOUR),
    'how long such an address is blocked at most: 1s at first, then each time twice as long',
  ),
  maxConnectionsPerAddress: setting(
    'maxConnectionsPerAddress',
    '<n>',
    '1000',
    integerBetween(0, 1_000_000),
    'connections of one IPv4 address, or IPv6 /64, to each thread; 0: any number',
  ),
  maxRequestsInflight: setting(
    'maxRequestsInflight',
    '<n>',
    '4096',
    integerBetween(0, 10_000_000),
    'requests in flight, without watches and the like, divided by threads and then by users; 0: any number',
  ),
  maxWatches: setting(
    'maxWatches',
    '<n>',
    '50000',
    integerBetween(0, 10_000_000),
    'watches and other long-running requests, divided by threads and then by users; 0: any number',
  ),
  maxBufferedBytes: setting(
    'maxBufferedBytes',
    '<bytes>',
    '268435456',
    bytesBetween(0, 1024 * 1024 * 1024 * 1024),
    'memory for heads above 8 KiB, bodies, and answers that clients have not taken, divided by threads and then by users; 0: any number',
  ),
  maxConnectionAge: setting(
    'maxConnectionAge',
    '<duration>',
    '0s',
    durationBetween(0, 24 * HOUR),
    'after this time, a tenth more or less, a client is asked to open another connection; what runs goes on; 0s: never',
  ),
  goawayChance: setting(
    'goawayChance',
    '<fraction>',
    '0',
    numberBetween(0, MOST_GOAWAY_CHANCE),
    'part of the HTTP/2 requests whose client is asked to open another connection; what runs goes on',
  ),
}

export function readClientLimits(reader: SettingsReader): ClientLimitsConfig {
  const table = CLIENT_LIMITS_TABLE
  return {
    maxHeaderBytes: reader.take(table.maxHeaderBytes, 0),
    maxConcurrentStreams: reader.take(table.maxConcurrentStreams, 0),
    headerTimeoutMs: reader.take(table.headerTimeout, 0),
    handshakeTimeoutMs: reader.take(table.handshakeTimeout, 0),
    firstRequestTimeoutMs: reader.take(table.firstRequestTimeout, 0),
    maxConnections: reader.take(table.maxConnections, 0),
    maxUnauthenticatedConnections: reader.take(table.maxUnauthenticatedConnections, 0),
    maxAuthenticationFailures: reader.take(table.maxAuthenticationFailures, 0),
    authenticationFailureBlockMs: reader.take(table.authenticationFailureBlock, 0),
    idleTimeoutMs: reader.take(table.idleTimeout, 0),
    maxConnectionsPerAddress: reader.take(table.maxConnectionsPerAddress, 0),
    maxRequestsInflight: reader.take(table.maxRequestsInflight, 0),
    maxWatches: reader.take(table.maxWatches, 0),
    maxBufferedBytes: reader.take(table.maxBufferedBytes, 0),
    maxConnectionAgeMs: reader.take(table.maxConnectionAge, 0),
    goawayChance: reader.take(table.goawayChance, 0),
  }
}
