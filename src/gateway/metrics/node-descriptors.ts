// Metrics of the process and of its Node, on the main thread: the conventional ones of Prometheus clients, after `portcullis_`.

import { type Metric, MetricTable } from './metric.ts'

const table = new MetricTable()
export const NODE_METRICS: readonly Metric[] = table.metrics

const GC_SECONDS = Float64Array.of(0.001, 0.01, 0.1, 1, 2, 5)

export const CPU_USER: Metric<[]> = table.counter(
  'process_cpu_user_seconds_total',
  [],
  'Total user CPU time spent in seconds.',
)
export const CPU_SYSTEM: Metric<[]> = table.counter(
  'process_cpu_system_seconds_total',
  [],
  'Total system CPU time spent in seconds.',
)
export const CPU: Metric<[]> = table.counter(
  'process_cpu_seconds_total',
  [],
  'Total user and system CPU time spent in seconds.',
)
export const START_TIME: Metric<[]> = table.gauge(
  'process_start_time_seconds',
  [],
  'Start time of the process since unix epoch in seconds.',
)
export const RESIDENT_MEMORY: Metric<[]> = table.gauge(
  'process_resident_memory_bytes',
  [],
  'Resident memory size in bytes.',
)
export const VIRTUAL_MEMORY: Metric<[]> = table.gauge(
  'process_virtual_memory_bytes',
  [],
  'Virtual memory size in bytes.',
)
export const HEAP_MEMORY: Metric<[]> = table.gauge('process_heap_bytes', [], 'Process heap size in bytes.')
export const OPEN_FDS: Metric<[]> = table.gauge('process_open_fds', [], 'Number of open file descriptors.')
export const MAX_FDS: Metric<[]> = table.gauge('process_max_fds', [], 'Maximum number of open file descriptors.')
export const LAG: Metric<[]> = table.gauge('nodejs_eventloop_lag_seconds', [], 'Lag of event loop in seconds.')
export const LAG_MIN: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_min_seconds',
  [],
  'The minimum recorded event loop delay.',
)
export const LAG_MAX: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_max_seconds',
  [],
  'The maximum recorded event loop delay.',
)
export const LAG_MEAN: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_mean_seconds',
  [],
  'The mean of the recorded event loop delays.',
)
export const LAG_STDDEV: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_stddev_seconds',
  [],
  'The standard deviation of the recorded event loop delays.',
)
export const LAG_P50: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_p50_seconds',
  [],
  'The 50th percentile of the recorded event loop delays.',
)
export const LAG_P90: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_p90_seconds',
  [],
  'The 90th percentile of the recorded event loop delays.',
)
export const LAG_P99: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_p99_seconds',
  [],
  'The 99th percentile of the recorded event loop delays.',
)
export const ACTIVE_RESOURCES: Metric<[string]> = table.gauge(
  'nodejs_active_resources',
  ['type'],
  'Number of active resources that are currently keeping the event loop alive, grouped by async resource type.',
)
export const ACTIVE_HANDLES: Metric<[string]> = table.gauge(
  'nodejs_active_handles',
  ['type'],
  'Number of active libuv handles grouped by handle type. Every handle type is C++ class name.',
)
export const ACTIVE_REQUESTS: Metric<[string]> = table.gauge(
  'nodejs_active_requests',
  ['type'],
  'Number of active libuv requests grouped by request type. Every request type is C++ class name.',
)
export const HEAP_TOTAL: Metric<[]> = table.gauge(
  'nodejs_heap_size_total_bytes',
  [],
  'Process heap size from Node.js in bytes.',
)
export const HEAP_USED: Metric<[]> = table.gauge(
  'nodejs_heap_size_used_bytes',
  [],
  'Process heap size used from Node.js in bytes.',
)
export const EXTERNAL_MEMORY: Metric<[]> = table.gauge(
  'nodejs_external_memory_bytes',
  [],
  'Node.js external memory size in bytes.',
)
export const SPACE_TOTAL: Metric<[string]> = table.gauge(
  'nodejs_heap_space_size_total_bytes',
  ['space'],
  'Process heap space size total from Node.js in bytes.',
)
export const SPACE_USED: Metric<[string]> = table.gauge(
  'nodejs_heap_space_size_used_bytes',
  ['space'],
  'Process heap space size used from Node.js in bytes.',
)
export const SPACE_AVAILABLE: Metric<[string]> = table.gauge(
  'nodejs_heap_space_size_available_bytes',
  ['space'],
  'Process heap space size available from Node.js in bytes.',
)
export const VERSION_INFO: Metric<[string, string, string, string]> = table.gauge(
  'nodejs_version_info',
  ['version', 'major', 'minor', 'patch'],
  'Node.js version info.',
)
export const GC_DURATION: Metric<['major' | 'minor' | 'incremental' | 'weakcb']> = table.histogram(
  'nodejs_gc_duration_seconds',
  ['kind'],
  'Garbage collection duration by kind, one of major, minor, incremental or weakcb.',
  GC_SECONDS,
)
