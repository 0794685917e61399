// Metrics of the read cache: rows of the table of all threads (gateway/metrics/descriptors.ts), to which program/subjects/subjects.ts adds them.

import { type Metric, SubjectMetrics } from '../../gateway/metrics/metric.ts'
import type { CacheResult } from '../core/requests/read-request.ts'

export const CACHE_METRICS = new SubjectMetrics()

export const CACHE_REQUESTS: Metric<[string, string, CacheResult]> = CACHE_METRICS.counter(
  'cache_requests_total',
  ['cluster', 'resource', 'result'],
  'Reads of resources in spec.cache: hit, or why they were forwarded',
)
export const CACHE_WATCHERS: Metric<[string, string]> = CACHE_METRICS.gauge(
  'cache_watchers',
  ['cluster', 'resource'],
  'Open watches that the read cache serves',
)
export const CACHE_OBJECTS: Metric<[string, string]> = CACHE_METRICS.gauge(
  'cache_objects',
  ['cluster', 'resource'],
  'Objects in the read cache',
)
export const CACHE_BYTES: Metric<[string, string]> = CACHE_METRICS.gauge(
  'cache_bytes',
  ['cluster', 'resource'],
  'Memory of the objects in the read cache, which all threads share, and room for compressed lists',
)
export const CACHE_AGE: Metric<[string, string]> = CACHE_METRICS.gauge(
  'cache_age_seconds',
  ['cluster', 'resource'],
  'Time since the cluster last reported a change, or that there was none',
)
export const CACHE_UPSTREAM_WATCHES: Metric<[string, string]> = CACHE_METRICS.gauge(
  'cache_upstream_watches',
  ['cluster', 'resource'],
  'Watches through which the read cache follows the resource',
)
export const CACHE_SERVING: Metric<[string, string]> = CACHE_METRICS.gauge(
  'cache_serving',
  ['cluster', 'resource'],
  '1 while all of the resource is cached and followed',
)
