// Plans this process's maximum memory before it starts: how much there is, which defaults are lowered to fit, and V8's limits per thread.

import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import type { Logger } from '../../kit/api/ports.ts'
import { CLIENT_LIMITS } from '../../process/config/client-limits.ts'
import type { Config } from '../../process/config/config.ts'
import {
  controlConnections,
  type MemoryCeiling,
  type MemoryLever,
  type MemorySettings,
  type ThreadHeap,
  threadHeap,
} from '../../process/core/memory/ceiling.ts'
import { type FittedMemory, fitMemory } from '../../process/core/memory/fit.ts'

/** Origin of the limit. */
type MemoryLimitSource = 'setting' | 'control group' | 'half of the machine'

export interface MemoryPlan {
  /** With lowered defaults. */
  readonly config: Config
  readonly ceiling: MemoryCeiling
  /** Bytes that the process may use. */
  readonly limitBytes: number
  readonly limitFrom: MemoryLimitSource
  readonly lowered: FittedMemory['lowered']
  /** V8 limits of each gateway thread. */
  readonly heap: ThreadHeap
}

/** Resources granted by the machine. */
export interface GrantedByMachine {
  /** Bytes; 0 = no limit. */
  readonly controlGroupBytes: number
  readonly machineBytes: number
  /** 0 = unknown. */
  readonly openFiles: number
}

/** Files not used by clients: upstream connections, logs, the store. At least half are left for clients. */
const OTHER_FILES = 1024
const ROWS_LOGGED = 5
/** One in this many of the limit is for followed objects of clusters. During a list they may take twice that. */
const FOLLOWED_PART = 8

function grantedByMachine(): GrantedByMachine {
  return { controlGroupBytes: memoryLimit(), machineBytes: totalmem(), openFiles: openFilesLimit() }
}

export function planMemory(config: Config, granted: GrantedByMachine = grantedByMachine()): MemoryPlan {
  const { limitBytes, limitFrom } = limitOf(config, granted)
  const isDefault = new Set(config.memoryDefaults)
  const settings = withinOpenFiles(settingsOf(config), isDefault, granted.openFiles)
  const { settings: fitted, ceiling, lowered } = fitMemory(settings, isDefault, limitBytes)
  const { maxConnections, maxRequestsInflight, maxWatches, maxBufferedBytes } = fitted
  const levers = { maxConnections, maxRequestsInflight, maxWatches, maxBufferedBytes }
  const maxFollowedBytes =
    config.maxFollowedBytes > 0 ? config.maxFollowedBytes : Math.floor(limitBytes / FOLLOWED_PART)
  return {
    config: Object.freeze({ ...config, ...levers, maxFollowedBytes }),
    ceiling,
    limitBytes,
    limitFrom,
    lowered,
    heap: threadHeap(fitted, maxFollowedBytes),
  }
}

function limitOf(
  { memoryLimit: set }: Config,
  { controlGroupBytes, machineBytes }: GrantedByMachine,
): Pick<MemoryPlan, 'limitBytes' | 'limitFrom'> {
  if (set > 0) return { limitBytes: set, limitFrom: 'setting' }
  // A group's limit may exceed the machine's memory.
  if (controlGroupBytes > 0 && controlGroupBytes < machineBytes) {
    return { limitBytes: controlGroupBytes, limitFrom: 'control group' }
  }
  return { limitBytes: Math.floor(machineBytes / 2), limitFrom: 'half of the machine' }
}

/** More connections than files would be accepted and then fail. */
function withinOpenFiles(
  settings: MemorySettings,
  isDefault: ReadonlySet<MemoryLever>,
  openFiles: number,
): MemorySettings {
  if (openFiles === 0 || !isDefault.has('maxConnections')) return settings
  const room = Math.max(Math.floor(openFiles / 2), openFiles - OTHER_FILES - controlConnections(settings))
  return { ...settings, maxConnections: Math.min(settings.maxConnections, room) }
}

function settingsOf(config: Config): MemorySettings {
  const {
    threads,
    maxConnections,
    maxRequestsInflight,
    maxWatches,
    maxBufferedBytes,
    maxFollowedBytes,
    maxControlConnections,
    top,
    source,
  } = config
  const audit = config.auditLogPath !== '' || config.auditWebhookConfigFile !== ''
  const embedded = source === 'embedded'
  return {
    threads,
    maxConnections,
    maxRequestsInflight,
    maxWatches,
    maxBufferedBytes,
    maxFollowedBytes,
    logs: 1 + Number(config.accessLog) + Number(audit),
    auditBodies: config.auditPolicyFile !== '',
    auditWebhook: config.auditWebhookConfigFile !== '',
    tracing: config.tracingOtlpEndpoint !== '',
    top,
    embedded,
    webhooks: Number(config.protection.listen !== undefined) + Number(source === 'kubernetes'),
    maxControlConnections,
    adminTlsPorts: Number(config.adminTlsCertFile !== '') + Number(config.healthTlsCertFile !== ''),
  }
}

/** One line: the ceiling, its components, and a warning if it exceeds the limit. */
export function logMemoryPlan(plan: MemoryPlan, log: Logger): void {
  const { ceiling, limitBytes, limitFrom, lowered, config } = plan
  const largest = ceiling.rows.slice(0, ROWS_LOGGED).map(({ what, bytes }) => `${what}: ${mebibytes(bytes)}`)
  const { maxConnections, maxRequestsInflight, maxWatches, maxBufferedBytes } = config
  const facts = {
    ceiling: ceiling.unbounded.length > 0 ? 'none' : mebibytes(ceiling.bytes),
    limit: mebibytes(limitBytes),
    limitFrom,
    maxConnections,
    maxRequestsInflight,
    maxWatches,
    maxBufferedBytes,
    ...(lowered.length > 0 && { lowered: lowered.map(({ setting, from }) => `${flagOf(setting)} from ${from}`) }),
    largest,
  }
  if (ceiling.unbounded.length > 0) {
    const settings = ceiling.unbounded.map(flagOf).join(', ')
    log.warn(`memory has no ceiling: ${settings} of 0 allows any number`, facts)
  } else if (ceiling.bytes > limitBytes) {
    const levers = ceiling.rows.flatMap(({ lever }) => (lever === undefined ? [] : [flagOf(lever)]))
    log.warn(`the settings allow more memory than there is: lower ${levers.join(', ')} or --threads`, facts)
  } else log.info('memory has a ceiling', facts)
}

function flagOf(lever: MemoryLever): string {
  return CLIENT_LIMITS[lever].flag
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / (1024 * 1024))}Mi`
}

// The limits of this process: its memory, by its control group, version 1 or 2, or one of that group's ancestors, and its open files.

/** Reads a file; undefined = it does not exist. */
type ReadText = (path: string) => string | undefined

/** Larger values mean "none": version 1 expresses that by the largest number of pages. */
const NO_LIMIT = 2 ** 60

/** Bytes; 0 = no limit, or unknown. @param read default: the file system */
export function memoryLimit(read: ReadText = readText): number {
  const groups = read('/proc/self/cgroup') ?? ''
  const limits: number[] = []
  for (const line of groups.split('\n')) {
    const [, id = '', controllers = '', path = ''] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? []
    if (id === '0' && controllers === '') limits.push(...alongPath('/sys/fs/cgroup', path, 'memory.max', read))
    if (controllers.split(',').includes('memory')) {
      limits.push(...alongPath('/sys/fs/cgroup/memory', path, 'memory.limit_in_bytes', read))
    }
  }
  return limits.length === 0 ? 0 : Math.min(...limits)
}

/** In a container the path may be the host's, whose groups are not visible: then the root is the container's own. */
function alongPath(root: string, path: string, file: string, read: ReadText): number[] {
  const limits: number[] = []
  for (let at = path; ; at = dirname(at)) {
    const limit = parseLimit(read(join(root, at, file)))
    if (limit > 0) limits.push(limit)
    if (at === '/' || at === '.' || at === '') return limits
  }
}

function parseLimit(text: string | undefined): number {
  const trimmed = text?.trim() ?? ''
  if (!/^\d+$/.test(trimmed)) return 0
  const bytes = Number(trimmed)
  return bytes >= NO_LIMIT ? 0 : bytes
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/**
 * How many files this process may have open; sockets count, too. The hard limit, to which Node raises the soft one at startup; 0 = unknown, or
 * unlimited.
 */
function openFilesLimit(read: () => string = () => readFileSync('/proc/self/limits', 'utf8')): number {
  try {
    return Number(/^Max open files\s+\S+\s+(\d+)/m.exec(read())?.[1] ?? 0)
  } catch {
    return 0
  }
}
