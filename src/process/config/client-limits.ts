// Limits for clients: size and duration of requests, totals over all clients, and connection lifetimes. Then the memory of the process.

import { MEMORY_LEVERS, type MemoryLever } from '../core/memory/ceiling.ts'
import { bytes, decimal, duration, integer, settings, type ValuesOf } from './setting-rows.ts'
import type { SettingsReader } from './settings-reader.ts'

const HOUR = 3_600_000
/** Like kube-apiserver. */
const MOST_GOAWAY_CHANCE = 0.02

export const CLIENT_LIMITS = settings({
  maxHeaderBytes: bytes('1048576', 4096, 64 * 1024 * 1024, 'largest request head'),
  maxConcurrentStreams: integer('250', 1, 100_000, 'requests that one HTTP/2 connection may have open'),
  headerTimeoutMs: duration('10s', 100, HOUR, 'how long a client may take to send a request head'),
  handshakeTimeoutMs: duration(
    '10s',
    100,
    HOUR,
    'how long a client may take to begin the TLS handshake, and, once that has left the queue, to complete it',
  ),
  idleTimeoutMs: duration(
    '2m',
    1_000,
    24 * HOUR,
    'how long an idle connection stays open; before its first request at most --first-request-timeout',
  ),
  /** HTTP/2 only; over HTTP/1.1 it is `headerTimeoutMs`. */
  firstRequestTimeoutMs: duration(
    '30s',
    1_000,
    HOUR,
    'how long an HTTP/2 connection stays open without a first request; for HTTP/1.1, see --header-timeout',
  ),
  /** Per process; 0 = unlimited. */
  maxConnections: integer(
    '20000',
    0,
    10_000_000,
    'maximum number of client connections, divided among the threads; beyond that, the user with the most loses one; 0: any number',
  ),
  /** Per process; 0 = half of `maxConnections`. */
  maxUnauthenticatedConnections: integer(
    '4000',
    0,
    10_000_000,
    'how many of them, at most half, may be without a request with a valid credential; beyond that, the address with the most loses one; 0: half of all',
  ),
  /** Per address and minute; 0 = not counted. */
  maxAuthenticationFailures: integer(
    '10',
    0,
    1_000_000,
    'credentials and TLS handshakes of one address that may fail in a minute; then it is blocked; 0: they are not counted',
  ),
  /** Longest time an address is blocked. */
  authenticationFailureBlockMs: duration(
    '5m',
    1_000,
    24 * HOUR,
    'maximum time for which such an address is blocked: 1s at first, doubled each time',
  ),
  /** Per gateway thread; 0 = unlimited. */
  maxConnectionsPerAddress: integer(
    '1000',
    0,
    1_000_000,
    'connections of one IPv4 address, or IPv6 /64, to each thread; 0: any number',
  ),
  /** Excludes long-running requests; per process; 0 = unlimited. */
  maxRequestsInflight: integer(
    '4096',
    0,
    10_000_000,
    'maximum number of requests in flight, except watches and the like, divided among threads and then among users; 0: any number',
  ),
  /** Includes other long-running requests; per process; 0 = unlimited. */
  maxWatches: integer(
    '50000',
    0,
    10_000_000,
    'maximum number of watches and other long-running requests, divided among threads and then among users; 0: any number',
  ),
  /** Large heads, bodies, and responses not read by clients; per process; 0 = unlimited. */
  maxBufferedBytes: bytes(
    '268435456',
    0,
    1024 * 1024 * 1024 * 1024,
    'memory for heads above 8 KiB, bodies, and answers that clients have not read, divided among threads and then among users; 0: any number',
  ),
  /** Jittered by a tenth; 0 = unlimited. */
  maxConnectionAgeMs: duration(
    '0s',
    0,
    24 * HOUR,
    'after this time, a tenth more or less, a client is asked to open another connection; requests in flight continue; 0s: never',
  ),
  /** Share of HTTP/2 requests, 0 to 0.02. */
  goawayChance: decimal(
    '0',
    0,
    MOST_GOAWAY_CHANCE,
    'fraction of HTTP/2 requests after which the client is asked to open another connection; requests in flight continue',
    { argument: '<fraction>' },
  ),
})

// Settings of memory: the total, and how much of it may be used for what clusters report. Other settings that have their defaults may be lowered at
// startup, so that everything fits.
const MIB = 1024 * 1024

export const MEMORY = settings({
  /** Bytes; 0 = detected. */
  memoryLimit: bytes(
    '',
    64 * MIB,
    2 ** 50,
    'memory that the process may take; defaults of other settings are lowered to fit; default: the limit of its control group, otherwise half of the machine',
  ),
  /** Bytes; 0 = an eighth of the memory limit. */
  maxFollowedBytes: bytes(
    '',
    MIB,
    2 ** 50,
    'memory for cached objects of clusters (pods, nodes, workloads), divided among clusters; default: an eighth of the memory limit',
  ),
})

export interface MemoryConfig extends ValuesOf<typeof MEMORY> {
  /** Settings that determine the ceiling, and that have their defaults. */
  readonly memoryDefaults: readonly MemoryLever[]
}

export function readMemory(reader: SettingsReader): MemoryConfig {
  return {
    ...reader.read(MEMORY),
    memoryDefaults: MEMORY_LEVERS.filter((lever) => reader.isDefault(CLIENT_LIMITS[lever])),
  }
}
