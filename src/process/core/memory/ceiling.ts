// Upper bound of the process's memory, computed from its settings: what can grow, how far, and what each unit costs. Memory that grows
// without being listed here is a bug: test/memory/ runs a gateway under attack in a cgroup of this size.

import { UNKNOWN_PART } from '../../../kit/core/shares/shared-resource.ts'
import { SHORT_PART } from '../../../kit/core/shares/waiting-answers.ts'

// Unit costs in resident memory, measured on a running gateway (docs/decisions/0048-memory-ceiling.md): V8, Node and OpenSSL objects,
// buffers and the kernel's part of a socket together. Rounded up.
const KIB = 1024
const MIB = 1024 * KIB

/** The program, its code, and the main thread without objects. */
const PROGRAM: number = 128 * MIB
/** A gateway thread that has served requests: code, compiled functions, tables of an empty configuration. */
const THREAD: number = 40 * MIB
/** The young generation of a thread: two halves of 16 MiB, and as much for large objects. V8's flag --max-semi-space-size. */
export const YOUNG_GENERATION: number = 48 * MIB
/** A client's idle TLS connection: 80 to 90 KiB with a client certificate, 70 to 80 KiB without, 60 KiB before its first request. */
export const CONNECTION: number = 88 * KIB
/** Kernel structures of a socket without data; a cgroup counts them. */
const SOCKET: number = 4 * KIB
/** A request in flight, with a head of up to 8 KiB. */
export const REQUEST: number = 24 * KIB
/** An open watch, on both sides, without its connection. */
export const WATCH: number = 6 * KIB
/** A cached refusal of a token: a hash, a time. */
const REJECTED_TOKEN: number = 512
/** A cached access review, with a reason of up to 1,024 characters. */
const ACCESS_REVIEW: number = 1536
/** A user remembered for a budget. */
const BUDGET: number = 512
/** A name with its sums in the tables of `portcullis top`. */
const TOP_NAME: number = 256
/** A traced request, as text. */
const TRACE: number = 8 * KIB
/** An event of a tap, as text. */
const TAP_EVENT: number = 4 * KIB

/** The settings that memory depends on. Numbers are per process, not per thread. */
export interface MemorySettings {
  /** Gateway threads. */
  readonly threads: number
  readonly maxConnections: number
  readonly maxRequestsInflight: number
  readonly maxWatches: number
  readonly maxBufferedBytes: number
  /** 0 = it has its default, which is not counted: most gateways follow little, and would have fewer connections for it. */
  readonly maxFollowedBytes: number
  /** Logs being written: process, access, audit. */
  readonly logs: number
  /** Whether bodies may be recorded in the audit log. */
  readonly auditBodies: boolean
  readonly auditWebhook: boolean
  readonly tracing: boolean
  readonly top: boolean
  /** Whether the API server for objects, and its store, run inside this process */
  readonly embedded: boolean
  /** Ports with webhooks: for objects, for deletions. */
  readonly webhooks: number
  /** Over all ports of control plane and webhooks. */
  readonly maxControlConnections: number
  /** Health and admin ports with TLS; without it their connections are small. */
  readonly adminTlsPorts: number
}

/** Settings that the ceiling grows with, and by which it can be lowered; in the order in which messages name them. */
export const MEMORY_LEVERS = ['maxConnections', 'maxRequestsInflight', 'maxWatches', 'maxBufferedBytes'] as const
export type MemoryLever = (typeof MEMORY_LEVERS)[number]

/** One consumer of memory. */
interface MemoryRow {
  readonly what: string
  /** Maximum over all threads. */
  readonly bytes: number
  /** The part in V8's heaps; the rest is in buffers, OpenSSL and the kernel. */
  readonly heap: number
  /** How many there are: one, or one per gateway thread. */
  readonly per: 'process' | 'thread'
  /** The setting that lowers it. */
  readonly lever?: MemoryLever
}

export interface MemoryCeiling {
  /** Sum of all rows; Infinity if a setting allows any number. */
  readonly bytes: number
  /** Settings of 0, which allow any number: what they bound has no row. */
  readonly unbounded: readonly MemoryLever[]
  /** Largest first. */
  readonly rows: readonly MemoryRow[]
}

/** The part of a connection, a request and a watch in V8's heap. */
const CONNECTION_HEAP = 24 * KIB
const REQUEST_HEAP = 20 * KIB
const WATCH_HEAP = 5 * KIB
/** Garbage not yet collected, relative to live objects: V8 collects a heap near its limit before it grows further. */
const GARBAGE = 0.4

/** Bounds of caches and queues, mostly per thread; test/memory/bounds.test.ts compares them with the constants that they stand for. */
export interface MemoryBounds {
  /** gateway/io/reviews/token-review.ts */
  readonly acceptedTokenBytes: number
  readonly rejectedTokens: number
  /** gateway/io/reviews/access-review.ts, allowed and denied ones. */
  readonly accessReviews: number
  /** gateway/state/user-budgets.ts, in each of three. */
  readonly budgetUsers: number
  /** gateway/request/held-answer.ts */
  readonly heldAnswerBytes: number
  /** kube/io/answers/thread-answers.ts: per thread, including the main thread. */
  readonly ownAnswerBytes: number
  /** kube/core/answers/answer-limits.ts: the largest answer that is parsed. */
  readonly parsedAnswerBytes: number
  /** http2/slabs.ts */
  readonly pooledBytes: number
  /** http2/slabs.ts */
  readonly pooledFrameBytes: number
  /** http2/slabs.ts */
  readonly pooledShortBytes: number
  /** http2/hpack/scratch.ts, for two. */
  readonly scratchBytes: number
  /** kit/core/shares/open-heads.ts */
  readonly spareHeadBytes: number
  /** program/wiring/wire.ts */
  readonly controlHeadBytes: number
  /** gateway/io/socket/unread-output.ts */
  readonly unreadBytes: number
  /** insight/core/top/traffic.ts: names in each of seven dimensions, in two tables. */
  readonly topNames: number
  /** audit/core/recorded-body.ts */
  readonly auditBodyBytes: number
  /** program/threads/thread/outbox.ts, characters. */
  readonly outboxCharacters: number
  /** kit/io/logs/line-writer.ts, characters. */
  readonly logCharacters: number
  /** traces/app/observers.ts, per thread, and traces/io/otlp-exporter.ts. */
  readonly threadTraces: number
  readonly traces: number
  /** insight/app/tap/tap-route.ts */
  readonly taps: number
  readonly tapEvents: number
  /** audit/io/webhook/audit-webhook.ts, characters. */
  readonly auditWebhookCharacters: number
  /** protection/webhooks/webhook.ts and webhook.ts: the larger one. */
  readonly webhookBytes: number
  /** apiserver/server.ts */
  readonly apiBodyBytes: number
  readonly apiAnswerBytes: number
  /** gateway/io/listener/http-plain.ts, connections per health or admin port. */
  readonly adminConnections: number
  /** apiserver/io/store/objects.ts: JSON of cached objects. */
  readonly storeBytes: number
}

export const BOUNDS: MemoryBounds = {
  acceptedTokenBytes: 32 * MIB,
  rejectedTokens: 16_384,
  accessReviews: 8192,
  budgetUsers: 4096,
  heldAnswerBytes: 16 * MIB,
  ownAnswerBytes: 24 * MIB,
  parsedAnswerBytes: 10 * MIB,
  pooledBytes: 8 * MIB,
  pooledFrameBytes: 128 * (16 * KIB + 9),
  pooledShortBytes: 64 * 2 * KIB,
  scratchBytes: 2 * MIB,
  spareHeadBytes: 4 * MIB,
  controlHeadBytes: 4 * MIB,
  unreadBytes: 32 * MIB,
  topNames: 8192,
  auditBodyBytes: 32 * MIB,
  outboxCharacters: 8 * MIB,
  logCharacters: 8 * MIB,
  threadTraces: 512,
  traces: 2048,
  taps: 16,
  tapEvents: 256,
  auditWebhookCharacters: 64 * MIB,
  webhookBytes: 64 * MIB,
  apiBodyBytes: 16 * MIB,
  apiAnswerBytes: 32 * MIB,
  adminConnections: 256,
  storeBytes: 32 * MIB,
}
/** Over the three slab sizes. */
const POOLED_BYTES = BOUNDS.pooledBytes + BOUNDS.pooledFrameBytes + BOUNDS.pooledShortBytes

/** Per thread, besides what grows: its code and configuration, and slack for what the model does not cover. */
const SPARE_HEAP_MIB = 192
/** A resource divided among users takes this multiple of its size, including the reserve of kit/core/shares/shares.ts ... */
const WITH_RESERVE: number = 1 + 1 / 8
/** ... and the pool for unauthenticated clients (kit/core/shares/shared-resource.ts), with its own reserve. */
const WITH_UNKNOWN: number = WITH_RESERVE * (1 + 1 / UNKNOWN_PART)
/** Plus the uncharged short answers: kit/core/shares/waiting-answers.ts. */
const WITH_SHORT_ANSWERS: number = WITH_UNKNOWN + 1 / SHORT_PART

/** Cost of a unit, in total and in V8's heap. */
interface Cost {
  readonly bytes: number
  readonly heap: number
}

const DIMENSION_TABLES = 14
const BUDGETS_PER_USER = 3
/** A parsed object takes this multiple of its JSON. */
const PARSED = 3
/** Most characters take one byte; those of other scripts take two. */
const BYTES_PER_CHARACTER = 2

export function memoryCeiling(settings: MemorySettings): MemoryCeiling {
  const rows = [...programRows(settings), ...clientRows(settings), ...threadRows(settings), ...mainRows(settings)]
  const heap = rows.reduce((sum, row) => sum + row.heap, 0)
  rows.push({ what: 'garbage that V8 has not collected yet', bytes: heap * GARBAGE, heap: 0, per: 'process' })
  const whole = rows.map((row) => ({ ...row, bytes: Math.ceil(row.bytes), heap: Math.ceil(row.heap) }))
  const taken = whole.filter(({ bytes }) => bytes > 0).sort((a, b) => b.bytes - a.bytes)
  const unbounded = MEMORY_LEVERS.filter((lever) => settings[lever] === 0)
  const sum = taken.reduce((all, { bytes }) => all + bytes, 0)
  return { bytes: unbounded.length > 0 ? Number.POSITIVE_INFINITY : sum, unbounded, rows: taken }
}

/** V8 heap limits of a thread, MiB; a thread that exceeds them is terminated. */
export interface ThreadHeap {
  /** The old generation. */
  readonly oldMiB: number
  /** The young generation. */
  readonly youngMiB: number
}

/** How much of the spare heap of a thread may be its index of what the read cache keeps. */
const SPARE_INDEX_MIB = SPARE_HEAP_MIB / 2

/**
 * V8 collects a limited heap before it reaches the limit; an unlimited one grows to several times its live objects. There is some slack
 * above the computed size, because a thread that reaches its limit is terminated, with everything it serves.
 * @param followedBytes memory for followed objects: in the read cache, all of it may be indexes of the threads
 */
export function threadHeap(settings: MemorySettings, followedBytes: number): ThreadHeap {
  const rows = [...clientRows(settings), ...threadRows(settings)]
  const heap = rows.reduce((sum, row) => sum + row.heap, 0) / settings.threads
  const index = Math.max(0, (WITH_RESERVE * followedBytes) / settings.threads - SPARE_INDEX_MIB * MIB)
  return {
    oldMiB: Math.ceil(((heap + index) * (1 + GARBAGE)) / MIB) + SPARE_HEAP_MIB,
    youngMiB: YOUNG_GENERATION / MIB,
  }
}

/**
 * Incoming bytes are held in buffers, and what is kept of them in V8's heap. A thread parses one response at a time; its result is garbage
 * at the end of the turn.
 */
const PARSED_ANSWER = PARSED * BOUNDS.parsedAnswerBytes
const OWN_ANSWERS: Cost = {
  bytes: WITH_UNKNOWN * BOUNDS.ownAnswerBytes + PARSED_ANSWER,
  heap: WITH_UNKNOWN * BOUNDS.ownAnswerBytes,
}

function programRows({ threads }: MemorySettings): MemoryRow[] {
  return [
    { what: 'the program and its main thread', bytes: PROGRAM, heap: 0, per: 'process' },
    { what: 'gateway threads, before they have clients', bytes: threads * THREAD, heap: 0, per: 'thread' },
    { what: "new objects of requests (V8's young generations)", ...young(threads + 1), per: 'thread' },
  ]
}

function young(isolates: number): Cost {
  return { bytes: isolates * YOUNG_GENERATION, heap: 0 }
}

/** On --control-listen and --protection-listen, as far as they exist. */
export function controlConnections({ embedded, webhooks, maxControlConnections }: MemorySettings): number {
  return embedded || webhooks > 0 ? maxControlConnections : 0
}

function connectionsCost(count: number): Cost {
  return { bytes: count * (CONNECTION + SOCKET), heap: count * CONNECTION_HEAP }
}

/** What clients can make the gateway hold: each has a setting. */
function clientRows(settings: MemorySettings): MemoryRow[] {
  const { maxConnections, maxRequestsInflight, maxWatches, maxBufferedBytes } = settings
  return [
    {
      what: 'connections of clients',
      ...connectionsCost(maxConnections),
      per: 'process',
      lever: 'maxConnections',
    },
    {
      what: 'requests in flight',
      bytes: WITH_UNKNOWN * maxRequestsInflight * REQUEST,
      heap: WITH_UNKNOWN * maxRequestsInflight * REQUEST_HEAP,
      per: 'process',
      lever: 'maxRequestsInflight',
    },
    {
      what: 'watches',
      bytes: WITH_UNKNOWN * maxWatches * WATCH,
      heap: WITH_UNKNOWN * maxWatches * WATCH_HEAP,
      per: 'process',
      lever: 'maxWatches',
    },
    {
      what: 'bodies, large heads, and answers that clients have not taken',
      bytes: WITH_SHORT_ANSWERS * maxBufferedBytes,
      heap: 0,
      per: 'process',
      lever: 'maxBufferedBytes',
    },
  ]
}

/** Caches and queues of each thread. */
function threadRows({ threads, top, tracing, auditBodies, logs }: MemorySettings): MemoryRow[] {
  const each = (what: string, bytes: number, heap = 0): MemoryRow => {
    return { what, bytes: threads * bytes, heap: threads * heap, per: 'thread' }
  }
  const tokens = BOUNDS.acceptedTokenBytes + BOUNDS.rejectedTokens * REJECTED_TOKEN
  const reviews = 2 * BOUNDS.accessReviews * ACCESS_REVIEW
  const budgets = BUDGETS_PER_USER * BOUNDS.budgetUsers * BUDGET
  const names = top ? DIMENSION_TABLES * BOUNDS.topNames * TOP_NAME : 0
  const lines = logs > 0 ? BYTES_PER_CHARACTER * BOUNDS.outboxCharacters : 0
  const traces = tracing ? BOUNDS.threadTraces * TRACE : 0
  const events = BOUNDS.taps * BOUNDS.tapEvents * TAP_EVENT
  return [
    each('tokens that are remembered', tokens, tokens),
    each('access reviews that are remembered', reviews, reviews),
    each('budgets of users', budgets, budgets),
    each('names that portcullis top counts', names, names / 2),
    each('answers to reads, held until they are whole', BOUNDS.heldAnswerBytes),
    each("answers to the gateway's own calls", OWN_ANSWERS.bytes, OWN_ANSWERS.heap),
    each('buffers that are kept for use', POOLED_BYTES + 2 * BOUNDS.scratchBytes),
    each('heads that come from those who have their share', WITH_UNKNOWN * BOUNDS.spareHeadBytes),
    each('output that clients do not read', BOUNDS.unreadBytes),
    each('bodies for the audit log', auditBodies ? BOUNDS.auditBodyBytes : 0),
    each('log lines on their way to the main thread', lines, lines / 2),
    each('traces on their way to the main thread', traces, traces),
    each('events of taps', events, events),
  ]
}

/** Caches and queues of the main thread. */
function mainRows(settings: MemorySettings): MemoryRow[] {
  const { logs, auditWebhook, tracing, embedded, webhooks, adminTlsPorts, maxFollowedBytes } = settings
  const one = (what: string, bytes: number, heap = 0): MemoryRow => ({ what, bytes, heap, per: 'process' })
  const lines = logs * BYTES_PER_CHARACTER * BOUNDS.logCharacters
  const traces = tracing ? BOUNDS.traces * TRACE : 0
  const webhook = auditWebhook ? BYTES_PER_CHARACTER * BOUNDS.auditWebhookCharacters : 0
  const store = embedded ? PARSED * BOUNDS.storeBytes : 0
  const connections = controlConnections(settings) + adminTlsPorts * BOUNDS.adminConnections
  const heads = controlConnections(settings) > 0 ? BOUNDS.controlHeadBytes + BOUNDS.spareHeadBytes : 0
  return [
    { what: 'connections to the ports of the main thread', ...connectionsCost(connections), per: 'process' },
    // There are no unauthenticated callers there, and its watches have their own caches.
    one("answers to the main thread's own calls", WITH_RESERVE * BOUNDS.ownAnswerBytes + PARSED_ANSWER),
    one('objects of clusters that are followed', WITH_RESERVE * maxFollowedBytes),
    one('log lines that wait for the disk or a reader', lines, lines),
    one('events for the audit webhook', webhook, webhook),
    one('traces for the collector', traces, traces),
    one('objects that the store remembers', store, store),
    one('heads that come to control plane and webhooks', WITH_UNKNOWN * heads),
    one('bodies sent to the API server for objects', embedded ? WITH_UNKNOWN * BOUNDS.apiBodyBytes : 0),
    one('answers of the API server for objects', embedded ? WITH_UNKNOWN * BOUNDS.apiAnswerBytes : 0),
    one('bodies sent to webhooks', webhooks * WITH_RESERVE * BOUNDS.webhookBytes),
  ]
}
