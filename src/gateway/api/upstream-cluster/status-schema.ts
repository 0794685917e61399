// The schema of UpstreamCluster's status.

import {
  also,
  byKey,
  flag,
  integer,
  list,
  map,
  object,
  oneOf,
  open,
  type Schema,
  text,
  time,
  typedText,
} from '../../../kit/api/json/json-schema.ts'
import { AUTO_DEGRADE_STATUS_SCHEMA } from './auto-degrade.ts'
import { AUTOSCALER_REPORT_SCHEMA } from './cluster-autoscaler.ts'
import type { CacheState } from './read-cache/read-cache-in-force.ts'

/** Rounding avoids a status write every second. */
export const LAST_SEEN_STEP_MINUTES = 5
const MAX_GENERATION = Number.MAX_SAFE_INTEGER

const condition = object(
  'A condition of the cluster.',
  {
    type: text(
      'Ready, EndpointsHealthy, CredentialsValid, ClientCertificatesAccepted, Degraded; ServersResolved, IssuersReachable, LimitsShared, PodsProtected, AutoDegraded, AutoscalerHealthy, ReadCacheReady and MembersReady if the spec asks for it.',
    ),
    status: oneOf('Whether it holds.', ['True', 'False', 'Unknown']),
    observedGeneration: generation('metadata.generation to which the condition applies.'),
    lastTransitionTime: time('When the status last changed.'),
    reason: text('Reason, as one word for programs.'),
    message: text('Reason, as a sentence for people.'),
  },
  ['type', 'status'],
  ['lastTransitionTime', 'reason', 'message'],
)

const protection = object(
  'How the replica protects pods.',
  {
    cell: text('spec.podProtection.cell.'),
    state: typedText<'Judging' | 'Counting' | 'Starting' | 'Broken'>(
      'Judging: it evaluates PodProtectors; Counting: it also counts the pods; Starting; or Broken.',
    ),
    since: time('When the state began.'),
    message: text('Why it is Broken.'),
  },
  ['cell'],
  ['state', 'since'],
)

// spec.cache: one entry for each replica, and one for all replicas together.

const MAX_COUNT = Number.MAX_SAFE_INTEGER

function count(description: string): ReturnType<typeof integer> {
  return also({ format: 'int64' }, integer(description, 0, MAX_COUNT))
}

const CACHE_NUMBERS = {
  objects: count('Cached objects, to two digits.'),
  bytes: text('Their memory, which all threads of a replica share, rounded up: 12Mi.'),
  age: text(
    'Time since the cluster last reported a change, or that there was none: <2m, which is as current as a cluster reports, or >2m, >4m and so on. Absent: nothing is cached.',
  ),
  hits: count('Reads answered from the cache, to two digits.'),
} as const

const cachedResource = object(
  'A resource of spec.cache.',
  {
    resource: text('Plural name with the group: deployments.apps.'),
    version: text('API version.'),
    state: typedText<CacheState>(
      'Serving; Loading: not read yet; Stale: the watch is interrupted, and reads are forwarded after maxStaleness; TooLarge: it needs more than ' +
        'maxBytes; Refused: the cluster does not allow it to be listed and watched; UnknownResource: the cluster has no such resource; Unreadable; WentBack: the ' +
        'cluster was restored to an older state. Except in Serving and Stale, reads are forwarded.',
    ),
    since: time('When the state began.'),
    message: text('The fault, its place and the fix; absent: none.'),
    ...CACHE_NUMBERS,
    passes: map('Forwarded reads by reason, to two digits.', integer('Number of reads.', 0, MAX_COUNT)),
  },
  ['resource', 'version'],
  ['state', 'since', 'objects', 'bytes', 'hits', 'passes'],
)

/** Entry of one replica. */
const CACHED_RESOURCES_SCHEMA = list(
  'The read cache (spec.cache) of the replica since its start. States are written at once, numbers at most twice a minute.',
  open(cachedResource),
)

/** All replicas together. */
const READ_CACHE_STATUS_SCHEMA = open(
  object(
    'The read caches (spec.cache) of all replicas: the worst state, the oldest age, and sums.',
    {
      resources: list('Each resource.', open(cachedResource)),
      serving: text('Resources that all replicas serve, of all resources: 2/3.'),
      ...CACHE_NUMBERS,
      passed: count('Forwarded reads, to two digits.'),
    },
    [],
    ['resources', 'serving', 'objects', 'bytes', 'hits', 'passed'],
  ),
)

const gateway = object(
  'A replica of the gateway.',
  {
    name: text('The replica.'),
    threads: integer('Threads that serve clients.', 0),
    threadsApplied: integer('Threads that have observedGeneration, or a newer one, in force.', 0),
    observedGeneration: generation('metadata.generation that the replica has put in force, or is about to.'),
    appliedAt: time('When the last thread had it in force.'),
    message: text('What prevents the replica from applying a newer generation, or what it lacks.'),
    podProtection: protection,
    cache: CACHED_RESOURCES_SCHEMA,
    lastSeen: object(
      `When clients that matter in an incident last sent a request through it, to ${LAST_SEEN_STEP_MINUTES} minutes. Absent: never since its start.`,
      {
        controllerManager: time('kube-controller-manager, which evicts pods of nodes without heartbeats.'),
        kubelets: time('Any kubelet: their heartbeats keep nodes Ready.'),
      },
    ),
    refusedDisruptive: integer(
      'Distinct disruptive requests that it refused in the last minute; above 10, rounded up to a power of two. Absent: none.',
      0,
    ),
  },
  ['name'],
  ['threads', 'threadsApplied', 'observedGeneration', 'appliedAt'],
)

const recoveryCheck = object(
  'A check that must hold before the next mode is set.',
  {
    name: text('Endpoints, Upstream, Nodes or Disruption.'),
    ok: flag('Whether it holds.'),
    message: text('The observation.'),
  },
  ['name', 'ok', 'message'],
)

const degrade = object('Observations of an incident by the leading gateway.', {
  readyNodesBefore: integer('Percentage of Ready nodes before it; absent: not observed.', 0, 100),
  auto: AUTO_DEGRADE_STATUS_SCHEMA,
  recovery: object(
    'Progress of spec.degrade.recovery.',
    {
      step: text('The present mode.'),
      since: time('When the present mode was set.'),
      startedFrom: text('The strictest mode so far: it does not go back further.'),
      holdingSince: time('Since when all checks have held; absent: at least one does not hold.'),
      checks: list('Checks that must hold before the next mode is set.', recoveryCheck),
      waitingFor: text('What must happen before the next mode is set.'),
    },
    ['step', 'since', 'startedFrom', 'checks', 'waitingFor'],
  ),
})

function generation(description: string): Schema<number> {
  return also({ format: 'int64' }, integer(description, 0, MAX_GENERATION))
}

export const UPSTREAM_CLUSTER_STATUS_SCHEMA = open(
  object('What the gateways report.', {
    observedGeneration: generation('metadata.generation that was last processed.'),
    conditions: byKey(
      'type',
      list(
        'Ready, EndpointsHealthy, CredentialsValid, ClientCertificatesAccepted, Degraded, ServersResolved, IssuersReachable, LimitsShared, PodsProtected, AutoDegraded, AutoscalerHealthy, ReadCacheReady, MembersReady.',
        condition,
      ),
    ),
    endpoints: object(
      'The servers.',
      {
        ready: integer('Enabled and healthy ones.', 0),
        total: integer('All in spec.servers; each address of a server with `resolve`.', 0),
      },
      [],
      ['ready', 'total'],
    ),
    gateways: byKey(
      'name',
      list(
        'The state of each replica, which proves that a switch is in force everywhere.',
        // Another replica may be newer: its fields are kept.
        open(gateway),
      ),
    ),
    degrade: open(degrade),
    autoscaler: AUTOSCALER_REPORT_SCHEMA,
    cache: READ_CACHE_STATUS_SCHEMA,
  }),
)
