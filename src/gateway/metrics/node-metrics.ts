// Process metrics from the operating system and Node, read at each scrape. Event loop delay and garbage collections are those of the main thread,
// which serves no requests.

import { readdirSync, readFileSync } from 'node:fs'
import { constants, monitorEventLoopDelay, PerformanceObserver, performance } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { getHeapSpaceStatistics } from 'node:v8'
import type { Exposition } from './exposition.ts'
import { MainFamilies } from './main-families.ts'
import type { Metric } from './metric.ts'
import {
  ACTIVE_HANDLES,
  ACTIVE_REQUESTS,
  ACTIVE_RESOURCES,
  CPU,
  CPU_SYSTEM,
  CPU_USER,
  EXTERNAL_MEMORY,
  GC_DURATION,
  HEAP_MEMORY,
  HEAP_TOTAL,
  HEAP_USED,
  LAG,
  LAG_MAX,
  LAG_MEAN,
  LAG_MIN,
  LAG_P50,
  LAG_P90,
  LAG_P99,
  LAG_STDDEV,
  MAX_FDS,
  OPEN_FDS,
  RESIDENT_MEMORY,
  SPACE_AVAILABLE,
  SPACE_TOTAL,
  SPACE_USED,
  START_TIME,
  VERSION_INFO,
  VIRTUAL_MEMORY,
} from './node-descriptors.ts'

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
    await nextTurn()
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
