// Process metrics from the operating system and Node, read at each scrape: the conventional ones of Prometheus clients, after `portcullis_`. Event loop delay and garbage collections are those of the main thread,
// which serves no requests.

import { readdirSync, readFileSync } from 'node:fs'
import { constants, monitorEventLoopDelay, PerformanceObserver, performance } from 'node:perf_hooks'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { getHeapSpaceStatistics } from 'node:v8'
import type { Exposition } from './exposition.ts'
import { MainFamilies } from './main-families.ts'
import { type Metric, MetricTable } from './metric.ts'

const table = new MetricTable()
export const NODE_METRICS: readonly Metric[] = table.metrics
const GC_SECONDS = Float64Array.of(0.001, 0.01, 0.1, 1, 2, 5)
const CPU_USER: Metric<[]> = table.counter(
  'process_cpu_user_seconds_total',
  [],
  'Total user CPU time spent in seconds.',
)
const CPU_SYSTEM: Metric<[]> = table.counter(
  'process_cpu_system_seconds_total',
  [],
  'Total system CPU time spent in seconds.',
)
const CPU: Metric<[]> = table.counter(
  'process_cpu_seconds_total',
  [],
  'Total user and system CPU time spent in seconds.',
)
const START_TIME: Metric<[]> = table.gauge(
  'process_start_time_seconds',
  [],
  'Start time of the process since unix epoch in seconds.',
)
const RESIDENT_MEMORY: Metric<[]> = table.gauge('process_resident_memory_bytes', [], 'Resident memory size in bytes.')
const VIRTUAL_MEMORY: Metric<[]> = table.gauge('process_virtual_memory_bytes', [], 'Virtual memory size in bytes.')
const HEAP_MEMORY: Metric<[]> = table.gauge('process_heap_bytes', [], 'Process heap size in bytes.')
const OPEN_FDS: Metric<[]> = table.gauge('process_open_fds', [], 'Number of open file descriptors.')
const MAX_FDS: Metric<[]> = table.gauge('process_max_fds', [], 'Maximum number of open file descriptors.')
const LAG: Metric<[]> = table.gauge('nodejs_eventloop_lag_seconds', [], 'Lag of event loop in seconds.')
const LAG_MIN: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_min_seconds',
  [],
  'The minimum recorded event loop delay.',
)
const LAG_MAX: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_max_seconds',
  [],
  'The maximum recorded event loop delay.',
)
const LAG_MEAN: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_mean_seconds',
  [],
  'The mean of the recorded event loop delays.',
)
const LAG_STDDEV: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_stddev_seconds',
  [],
  'The standard deviation of the recorded event loop delays.',
)
const LAG_P50: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_p50_seconds',
  [],
  'The 50th percentile of the recorded event loop delays.',
)
const LAG_P90: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_p90_seconds',
  [],
  'The 90th percentile of the recorded event loop delays.',
)
const LAG_P99: Metric<[]> = table.gauge(
  'nodejs_eventloop_lag_p99_seconds',
  [],
  'The 99th percentile of the recorded event loop delays.',
)
const ACTIVE_RESOURCES: Metric<[string]> = table.gauge(
  'nodejs_active_resources',
  ['type'],
  'Number of active resources that are currently keeping the event loop alive, grouped by async resource type.',
)
const ACTIVE_HANDLES: Metric<[string]> = table.gauge(
  'nodejs_active_handles',
  ['type'],
  'Number of active libuv handles grouped by handle type. Every handle type is C++ class name.',
)
const ACTIVE_REQUESTS: Metric<[string]> = table.gauge(
  'nodejs_active_requests',
  ['type'],
  'Number of active libuv requests grouped by request type. Every request type is C++ class name.',
)
const HEAP_TOTAL: Metric<[]> = table.gauge(
  'nodejs_heap_size_total_bytes',
  [],
  'Process heap size from Node.js in bytes.',
)
const HEAP_USED: Metric<[]> = table.gauge(
  'nodejs_heap_size_used_bytes',
  [],
  'Process heap size used from Node.js in bytes.',
)
const EXTERNAL_MEMORY: Metric<[]> = table.gauge(
  'nodejs_external_memory_bytes',
  [],
  'Node.js external memory size in bytes.',
)
const SPACE_TOTAL: Metric<[string]> = table.gauge(
  'nodejs_heap_space_size_total_bytes',
  ['space'],
  'Process heap space size total from Node.js in bytes.',
)
const SPACE_USED: Metric<[string]> = table.gauge(
  'nodejs_heap_space_size_used_bytes',
  ['space'],
  'Process heap space size used from Node.js in bytes.',
)
const SPACE_AVAILABLE: Metric<[string]> = table.gauge(
  'nodejs_heap_space_size_available_bytes',
  ['space'],
  'Process heap space size available from Node.js in bytes.',
)
const VERSION_INFO: Metric<[string, string, string, string]> = table.gauge(
  'nodejs_version_info',
  ['version', 'major', 'minor', 'patch'],
  'Node.js version info.',
)
const GC_DURATION: Metric<['major' | 'minor' | 'incremental' | 'weakcb']> = table.histogram(
  'nodejs_gc_duration_seconds',
  ['kind'],
  'Garbage collection duration by kind, one of major, minor, incremental or weakcb.',
  GC_SECONDS,
)

/** Interval for sampling the main thread's delay, milliseconds. Each sample wakes a core, on which a gateway thread may be running. */
const LAG_LOOK_MS = 50
const MICROSECONDS = 1e6
const NANOSECONDS = 1e9
const GC_KINDS: ReadonlyMap<unknown, 'major' | 'minor' | 'incremental' | 'weakcb'> = new Map([
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
])
/** Fields of /proc/self/status, in KiB. */
const MEMORY: readonly (readonly [field: string, metric: Metric<[]>])[] = [
  ['VmRSS', RESIDENT_MEMORY],
  ['VmSize', VIRTUAL_MEMORY],
  ['VmData', HEAP_MEMORY],
]

/** Observes the process from now on. */
export function nodeMetrics(): (into: Exposition) => Promise<void> {
  const lags = lagMetrics()
  const collections = gcMetrics()
  const maxFds = Number(/^Max open files +(\d+)/m.exec(readProc('/proc/self/limits'))?.[1])
  return async (into) => {
    exposeProcess(into)
    if (Number.isFinite(maxFds)) into.addMetric(MAX_FDS, maxFds)
    exposeActive(into)
    exposeHeap(into)
    collections(into)
    await lags(into)
  }
}

function exposeProcess(into: Exposition): void {
  const { user, system } = process.cpuUsage()
  into.addMetric(CPU_USER, user / MICROSECONDS)
  into.addMetric(CPU_SYSTEM, system / MICROSECONDS)
  into.addMetric(CPU, (user + system) / MICROSECONDS)
  into.addMetric(START_TIME, Math.round(performance.timeOrigin / 1000))
  const { version } = process
  const [major = '', minor = '', patch = ''] = version.slice(1).split('.')
  into.addMetric(VERSION_INFO, 1, version, major, minor, patch)
  const status = readProc('/proc/self/status')
  if (status === '') into.addMetric(RESIDENT_MEMORY, process.memoryUsage.rss())
  for (const [field, metric] of MEMORY) {
    const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status) ?? []
    if (kib !== undefined) into.addMetric(metric, Number(kib) * 1024)
  }
  try {
    // Excludes the one used for reading.
    into.addMetric(OPEN_FDS, readdirSync('/proc/self/fd').length - 1)
  } catch {
    // The directory only exists on Linux.
  }
}

/** '' = no such file: the system is not Linux. */
function readProc(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function exposeActive(into: Exposition): void {
  exposeCounts(into, ACTIVE_RESOURCES, process.getActiveResourcesInfo())
  exposeCounts(into, ACTIVE_HANDLES, classesOf('_getActiveHandles'))
  exposeCounts(into, ACTIVE_REQUESTS, classesOf('_getActiveRequests'))
}

function exposeCounts(into: Exposition, metric: Metric<[string]>, names: readonly string[]): void {
  into.declare(metric)
  for (const [name, all] of Map.groupBy(names, (one) => one)) into.addMetric(metric, all.length, name)
}

/** Class names from an undocumented Node function, which may disappear. */
function classesOf(name: '_getActiveHandles' | '_getActiveRequests'): string[] {
  const list: unknown = Reflect.get(process, name)
  const all: unknown = typeof list === 'function' ? Reflect.apply(list, process, []) : []
  return Array.isArray(all) ? all.flatMap((one: unknown) => (one instanceof Object ? [one.constructor.name] : [])) : []
}

function exposeHeap(into: Exposition): void {
  const { heapTotal, heapUsed, external } = process.memoryUsage()
  into.addMetric(HEAP_TOTAL, heapTotal)
  into.addMetric(HEAP_USED, heapUsed)
  into.addMetric(EXTERNAL_MEMORY, external)
  for (const { space_name, space_size, space_used_size, space_available_size } of getHeapSpaceStatistics()) {
    const space = space_name.replace(/_space.*$/, '')
    into.addMetric(SPACE_TOTAL, space_size, space)
    into.addMetric(SPACE_USED, space_used_size, space)
    into.addMetric(SPACE_AVAILABLE, space_available_size, space)
  }
}

/** How late the event loop was since the last scrape. */
function lagMetrics(): (into: Exposition) => Promise<void> {
  const delays = monitorEventLoopDelay({ resolution: LAG_LOOK_MS })
  delays.enable()
  return async (into) => {
    into.addMetric(LAG_MIN, delays.min / NANOSECONDS)
    into.addMetric(LAG_MAX, delays.max / NANOSECONDS)
    into.addMetric(LAG_MEAN, delays.mean / NANOSECONDS)
    into.addMetric(LAG_STDDEV, delays.stddev / NANOSECONDS)
    into.addMetric(LAG_P50, delays.percentile(50) / NANOSECONDS)
    into.addMetric(LAG_P90, delays.percentile(90) / NANOSECONDS)
    into.addMetric(LAG_P99, delays.percentile(99) / NANOSECONDS)
    delays.reset()
    const startMs = performance.now()
    await yieldToEventLoop()
    into.addMetric(LAG, (performance.now() - startMs) / 1000)
  }
}

function gcMetrics(): (into: Exposition) => void {
  const families = new MainFamilies()
  const durations = families.of(GC_DURATION)
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const detail: unknown = Reflect.get(entry, 'detail')
      const kind = detail instanceof Object ? GC_KINDS.get(Reflect.get(detail, 'kind')) : undefined
      if (kind !== undefined) durations.observe(entry.duration / 1000, kind)
    }
  }).observe({ entryTypes: ['gc'] })
  return families.expose
}
