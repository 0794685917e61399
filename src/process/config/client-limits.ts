// The limits for clients: what each may send and how long it may take, what all of them together may hold, and when a connection ends.
// Then the memory of the process.

import { MEMORY_LEVERS, type MemoryLever } from '../core/memory/ceiling.ts'
import { bytes, decimal, duration, integer, settings, type ValuesOf } from './setting-rows.ts'
import type { SettingsReader } from './settings-reader.ts'

const HOUR = 3_600_000
/** As kube-apiserver. */
const MOST_GOAWAY_CHANCE = 0.02

export const CLIENT_LIMITS = settings({
  maxHeaderBytes: bytes('1048576', 4096, 64 * 1024 * 1024, 'largest request head'),
  maxConcurrentStreams: integer('250', 1, 100_000, 'requests that one HTTP/2 connection may have open'),
  headerTimeoutMs: duration('10s', 100, HOUR, 'how long a client may take to send a request head'),
  handshakeTimeoutMs: duration(
    '10s',
    100,
    HOUR,
    'how long a client may take to begin the TLS handshake, and from its turn on to complete it',
  ),
  idleTimeoutMs: duration(
    '2m',
    1_000,
    24 * HOUR,
    'how long an idle connection stays open; before its first request --first-request-timeout at most',
  ),
  /** Over HTTP/2; over HTTP/1.1 it is `headerTimeoutMs`. */
  firstRequestTimeoutMs: duration(
    '30s',
    1_000,
    HOUR,
    'how long an HTTP/2 connection stays open without a first request; over HTTP/1.1 --header-timeout',
  ),
  /** Of the process; 0 = any number. */
  maxConnections: integer(
    '20000',
    0,
    10_000_000,
    'connections of clients, divided by the threads; beyond, the user with most of them loses one; 0: any number',
  ),
  /** Of the process; 0 = half of `maxConnections`. */
  maxUnauthenticatedConnections: integer(
    '4000',
    0,
    10_000_000,
    'those of them, half at most, that have not sent a request with a valid credential; beyond, the address with most loses one; 0: half of all',
  ),
  /** Of an address, in a minute; 0 = they are not counted. */
  maxAuthenticationFailures: integer(
    '10',
    0,
    1_000_000,
    'credentials and TLS handshakes of one address that may fail in a minute; then it is blocked; 0: they are not counted',
  ),
  /** The longest time for which an address is blocked. */
  authenticationFailureBlockMs: duration(
    '5m',
    1_000,
    24 * HOUR,
    'how long such an address is blocked at most: 1s at first, then each time twice as long',
  ),
  /** For each gateway thread; 0 = any number. */
  maxConnectionsPerAddress: integer(
    '1000',
    0,
    1_000_000,
    'connections of one IPv4 address, or IPv6 /64, to each thread; 0: any number',
  ),
  /** Without those that are long-running; of the process; 0 = any number. */
  maxRequestsInflight: integer(
    '4096',
    0,
    10_000_000,
    'requests in flight, without watches and the like, divided by threads and then by users; 0: any number',
  ),
  /** With other long-running requests; of the process; 0 = any number. */
  maxWatches: integer(
    '50000',
    0,
    10_000_000,
    'watches and other long-running requests, divided by threads and then by users; 0: any number',
  ),
  /** Of large heads, bodies, and answers that clients have not taken; of the process; 0 = any number. */
  maxBufferedBytes: bytes(
    '268435456',
    0,
    1024 * 1024 * 1024 * 1024,
    'memory for heads above 8 KiB, bodies, and answers that clients have not taken, divided by threads and then by users; 0: any number',
  ),
  /** A tenth more or less; 0 = any age. */
  maxConnectionAgeMs: duration(
    '0s',
    0,
    24 * HOUR,
    'after this time, a tenth more or less, a client is asked to open another connection; what runs goes on; 0s: never',
  ),
  /** Part of the HTTP/2 requests, 0 to 0.02. */
  goawayChance: decimal(
    '0',
    0,
    MOST_GOAWAY_CHANCE,
    'part of the HTTP/2 requests whose client is asked to open another connection; what runs goes on',
    { argument: '<fraction>' },
  ),
})

// The settings of memory: how much there is, and how much of it for what clusters say of themselves. Other settings that have their
// defaults may be lowered at the start, so that all of it fits.
const MIB = 1024 * 1024

export const MEMORY = settings({
  /** Bytes; 0 = what the system says. */
  memoryLimit: bytes(
    '',
    64 * MIB,
    2 ** 50,
    'memory that the process may take; defaults of other settings are lowered to fit; default: the limit of its control group, else half of the machine',
  ),
  /** Bytes; 0 = an eighth of the memory limit. */
  maxFollowedBytes: bytes(
    '',
    MIB,
    2 ** 50,
    'memory for what is kept of the objects of clusters (pods, nodes, workloads), divided among clusters; default: an eighth of the memory limit',
  ),
})

export interface MemoryConfig extends ValuesOf<typeof MEMORY> {
  /** Settings that the ceiling grows with, and that have their defaults. */
  readonly memoryDefaults: readonly MemoryLever[]
}

export function readMemory(reader: SettingsReader): MemoryConfig {
  return {
    ...reader.read(MEMORY),
    memoryDefaults: MEMORY_LEVERS.filter((lever) => reader.isDefault(CLIENT_LIMITS[lever])),
  }
}
