// Plans this process's maximum memory before it starts: how much there is, which defaults are lowered to fit, and V8's limits per thread.

import { totalmem } from 'node:os'
import type { Logger } from '../../kit/api/ports.ts'
import { memoryLimit, openFilesLimit } from '../../kit/io/world/process-limits.ts'
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
