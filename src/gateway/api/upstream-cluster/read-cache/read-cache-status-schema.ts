// Schema of spec.cache in the status of an UpstreamCluster: one entry for each replica, and one for all replicas together.

import { also, integer, list, map, object, open, text, time, typedText } from '../../../../kit/api/json/json-schema.ts'
import type { CacheState } from './read-cache-in-force.ts'

const MAX_COUNT = Number.MAX_SAFE_INTEGER

function count(description: string): ReturnType<typeof integer> {
  return also({ format: 'int64' }, integer(description, 0, MAX_COUNT))
}

const NUMBERS = {
  objects: count('Cached objects, to two digits.'),
  bytes: text('Their memory, which all threads of a replica share, rounded up: 12Mi.'),
  age: text(
    'Time since the cluster last reported a change, or that there was none: <2m, which is as current as a cluster reports, or >2m, >4m and so on. Absent: nothing is cached.',
  ),
  hits: count('Reads answered from the cache, to two digits.'),
} as const

const resource = object(
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
    ...NUMBERS,
    passes: map('Forwarded reads by reason, to two digits.', integer('Number of reads.', 0, MAX_COUNT)),
  },
  ['resource', 'version'],
  ['state', 'since', 'objects', 'bytes', 'hits', 'passes'],
)

/** Entry of one replica. */
export const CACHED_RESOURCES_SCHEMA = list(
  'The read cache (spec.cache) of the replica since its start. States are written at once, numbers at most twice a minute.',
  open(resource),
)

/** All replicas together. */
export const READ_CACHE_STATUS_SCHEMA = open(
  object(
    'The read caches (spec.cache) of all replicas: the worst state, the oldest age, and sums.',
    {
      resources: list('Each resource.', open(resource)),
      serving: text('Resources that all replicas serve, of all resources: 2/3.'),
      ...NUMBERS,
      passed: count('Forwarded reads, to two digits.'),
    },
    [],
    ['resources', 'serving', 'objects', 'bytes', 'hits', 'passed'],
  ),
)
