// What a row of numbers means, by its kind: the layout that the thread that counts, the merging and the text share.

/** How rows of one kind are named and added up. */
export interface Kind {
  /** Numbers in a row. */
  readonly width: number
  /** The first so many of them are gauges: they go with the thread that set them, the rest stays. */
  readonly gauges: number
  /** What `first` of a row is: an index into the names, the row it belongs to, or nothing. */
  readonly first: 'name' | 'row' | 'none'
  /** What `second` of a row is: an index into the names, or a number that is the same in every thread. */
  readonly second: 'name' | 'number'
  /** Rows of this kind in one store; what comes after is counted together as `other`. */
  readonly limit: number
}

/** Names from the configuration (rules, schemas, endpoints) that one table takes up. */
const MAX_TABLE_ROWS = 1000
const UNLIMITED = Number.POSITIVE_INFINITY

// Buckets of kube-apiserver's apiserver_request_duration_seconds and apiserver_response_sizes.
export const DURATION_BUCKETS: Float64Array = Float64Array.of(
  ...[0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60],
)
export const SIZE_BUCKETS: Float64Array = Float64Array.of(1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)
export const ADDED_BUCKETS: Float64Array = Float64Array.of(
  ...[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
)

/** A histogram is its count, its sum, and one number for each bucket. */
const HISTOGRAM_HEAD = 2

// Offsets in a row of kind VERB: requests of one verb and scope to one resource.
/** Long-running requests open. */
export const ACTIVE = 0
/** Long-running requests ended. */
export const LONG_RUNNING = 1
export const DURATIONS = 2
export const SIZES: number = DURATIONS + HISTOGRAM_HEAD + DURATION_BUCKETS.length

// Offsets in the one row of kind CLUSTER.
export const READ_ONLY = 0
export const MUTATING = 1
export const RETRIES = 2
export const TOKEN_REVIEWS = 5
export const TOKEN_CACHE = 8
export const ACCESS_REVIEWS = 10
export const ADDED = 13

// Label values of the counters in a row of kind CLUSTER, in the order of their offsets.
export const RETRY_CAUSES = ['refused', 'connect', 'read'] as const
export const REVIEW_RESULTS = ['allowed', 'denied', 'error'] as const
export const CACHE_RESULTS = ['hit', 'miss'] as const

// Offsets in rows whose gauge somebody sets: a row that was not set is not shown.
export const GAUGE = 0
export const IS_SET = 1

/** Fields of Http2Counters, in the order of the numbers in a row of kind HTTP2. */
export const HTTP2_FIELDS = [
  'rapidReset',
  'madeYouReset',
  'continuationFlood',
  'settingsFlood',
  'pingFlood',
  'emptyFrames',
  'windowUpdateFlood',
  'hpackBomb',
  'headerListTooLarge',
  'streamLimit',
  'slowRead',
  'slowPreface',
  'priorityFlood',
  'unknownFrames',
  'protocolErrors',
  'connectionsOpened',
  'connectionsClosed',
  'goawayReceived',
  'goawaySent',
  'streamsRefused',
  'headsNotSent',
  'pingTimeouts',
  'idleTimeouts',
  'settingsTimeouts',
] as const

/** Fields of UpstreamCounters, in the order of the numbers in a row of kind POOL. */
export const POOL_FIELDS = [
  'opened',
  'connectFailed',
  'closedByAge',
  'closedByIdle',
  'closedByGoaway',
  'closedByLoss',
  'closedBySettingsTimeout',
  'closedByPingTimeout',
  'closedByDrain',
] as const

// Kinds: indexes into KINDS. Of clusters:
/** A resource: four names from `first` on (group, version, resource, subresource), `second` is its standing. */
export const RESOURCE = 0
/** `first` = row of the resource, `second` = verb and scope. */
export const VERB = 1
/** `first` = row of the verb, `second` = code. */
export const CODE = 2
export const CLUSTER = 3
export const REFUSAL = 4
export const SHADOW = 5
export const UPSTREAM = 6
export const ADMITTED = 7
export const REJECTED = 8
export const ABORT = 9
export const EJECTION = 10
export const CONNECTIONS = 11
export const FLOW = 12
export const POOL = 13
// Of the process:
export const CLIENTS = 14
export const HANDSHAKES = 15
export const LOG = 16
export const HTTP2 = 17
/** Connections of clients that were refused. */
export const REFUSED_CLIENTS = 18

// The standing of a resource.
/** No upstream has answered well for it: requests may have invented it. */
export const UNPROVEN = 0
export const PROVEN = 1
/** Requests that name no resource. */
export const PATH = 2
/** Resources that found no place. */
export const OTHER = 3

/** Distinct resources that one cluster may have; what comes after is `other`. */
export const MAX_RESOURCES = 500
/** How many of them may be unproven: nobody fills the table with invented names. */
export const MAX_UNPROVEN_RESOURCES = 100

const counters = (first: Kind['first'], second: Kind['second'], limit: number = MAX_TABLE_ROWS): Kind => ({
  width: 1,
  gauges: 0,
  first,
  second,
  limit,
})
const gauges = (second: Kind['second']): Kind => ({ ...counters('name', second), width: 2, gauges: 2 })

export const KINDS: readonly Kind[] = [
  { ...counters('none', 'number', UNLIMITED), width: 0 },
  {
    ...counters('row', 'number', UNLIMITED),
    width: SIZES + HISTOGRAM_HEAD + SIZE_BUCKETS.length,
    gauges: LONG_RUNNING,
  },
  counters('row', 'number', UNLIMITED),
  { ...counters('none', 'number'), width: ADDED + HISTOGRAM_HEAD + ADDED_BUCKETS.length, gauges: RETRIES },
  counters('name', 'name'),
  counters('name', 'number'),
  counters('name', 'number'),
  counters('name', 'number'),
  counters('name', 'number'),
  counters('name', 'number'),
  counters('name', 'number'),
  gauges('name'),
  gauges('number'),
  { ...counters('name', 'number'), width: POOL_FIELDS.length },
  { ...counters('name', 'number'), gauges: 1 },
  counters('none', 'number'),
  counters('name', 'number'),
  { ...counters('name', 'number'), width: HTTP2_FIELDS.length },
  counters('none', 'number'),
]
