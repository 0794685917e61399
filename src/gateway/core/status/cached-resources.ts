// spec.cache in the status: builds the entry of a replica, rounded so that it is rarely written, and merges the entries of all replicas.

import { metaTime } from '../../../kit/core/text/meta-time.ts'
import { bytesOf, quantityOf } from '../../api/upstream-cluster/read-cache/read-cache.ts'
import {
  type CachedResourceInForce,
  cacheStateRank,
} from '../../api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type {
  CachedResourceStatus,
  Condition,
  GatewayStatus,
  ReadCacheStatus,
} from '../../api/upstream-cluster/status.ts'
import { joinedMessages } from './messages.ts'

/** Minimum time between two writes that change only numbers. */
export const CACHE_NUMBERS_MS = 30_000
/** A cluster sends an event or a bookmark at least once a minute. */
const CURRENT_MINUTES = 2
const MINUTE_MS = 60_000

/** A replica's entry, and since when it has been shown. */
export interface ShownCache {
  readonly resources: readonly CachedResourceStatus[]
  /** Monotonic. */
  readonly atMs: number
}

/**
 * The entry that should be shown; `shown` itself if nothing needs to be written.
 * @param shown the present entry
 * @param nowMs monotonic
 */
export function shownCache(
  kept: readonly CachedResourceInForce[],
  shown: ShownCache | undefined,
  nowMs: number,
): ShownCache | undefined {
  if (kept.length === 0) return undefined
  const before = shown?.resources ?? []
  const isNew =
    kept.length !== before.length ||
    kept.some(({ resource, version, state }, i) => {
      const was = before[i]
      return was?.resource !== resource || was.version !== version || was.state !== state
    })
  if (shown !== undefined && !isNew && nowMs - shown.atMs < CACHE_NUMBERS_MS) return shown
  const resources = kept.map(entryOf)
  if (shown !== undefined && JSON.stringify(resources) === JSON.stringify(before)) return shown
  return { resources, atMs: nowMs }
}

function entryOf(kept: CachedResourceInForce): CachedResourceStatus {
  const { resource, version, state, sinceMs, message, objects, bytes, ageMs, hits, passes } = kept
  return {
    resource,
    version,
    state,
    since: metaTime(sinceMs),
    ...(message !== '' && { message }),
    objects: twoDigits(objects),
    bytes: quantityOf(bytes),
    ...(ageMs !== undefined && { age: ageText(ageMs) }),
    hits: twoDigits(hits),
    passes: Object.fromEntries(Object.entries(passes).map(([reason, count]) => [reason, twoDigits(count)])),
  }
}

/** Rounded down to two digits, so that a growing number is written ever less often. */
function twoDigits(count: number): number {
  if (count < 100) return count
  const unit = 10 ** (Math.floor(Math.log10(count)) - 1)
  return Math.floor(count / unit) * unit
}

/** In steps that double. */
function ageText(ageMs: number): string {
  const minutes = ageMs / MINUTE_MS
  if (minutes < CURRENT_MINUTES) return `<${CURRENT_MINUTES}m`
  return `>${CURRENT_MINUTES * 2 ** Math.floor(Math.log2(minutes / CURRENT_MINUTES))}m`
}

/** Minutes, at least; 0 = current, or no text of `ageText`. */
function ageRank(age: string): number {
  return age.startsWith('>') ? Number.parseInt(age.slice(1), 10) || 0 : 0
}

/** The entries of all replicas as one; undefined = none has one yet. @param wanted of spec.cache in force: `pods`, `deployments.apps` */
export function mergedCache(
  wanted: readonly string[],
  gateways: readonly GatewayStatus[],
): ReadCacheStatus | undefined {
  const all = gateways.flatMap(({ cache = [] }) => cache.filter(({ resource }) => wanted.includes(resource)))
  const groups = [...Map.groupBy(all, ({ resource, version }) => `${resource}/${version}`).values()]
  const resources = groups.flatMap((same) => mergedResource(same) ?? [])
  if (resources.length === 0) return undefined
  const serving = resources.filter(({ state }) => state === 'Serving').length
  const passed = resources.flatMap(({ passes }) => Object.values(passes)).reduce(plus, 0)
  return { resources, serving: `${serving}/${resources.length}`, ...sumsOf(resources), passed: twoDigits(passed) }
}

function mergedResource(same: readonly CachedResourceStatus[]): CachedResourceStatus | undefined {
  const worst = same.toSorted((a, b) => cacheStateRank(a.state) - cacheStateRank(b.state))[0]
  if (worst === undefined) return undefined
  const { resource, version, state, since, message } = worst
  const passes: Record<string, number> = {}
  for (const one of same) {
    for (const [reason, count] of Object.entries(one.passes)) passes[reason] = (passes[reason] ?? 0) + count
  }
  return {
    resource,
    version,
    state,
    since,
    ...(message !== undefined && { message }),
    ...sumsOf(same),
    // Each replica keeps the same objects.
    objects: Math.max(...same.map(({ objects }) => objects)),
    passes: Object.fromEntries(Object.entries(passes).map(([reason, count]) => [reason, twoDigits(count)])),
  }
}

function sumsOf(
  all: readonly CachedResourceStatus[],
): Pick<CachedResourceStatus, 'objects' | 'bytes' | 'age' | 'hits'> {
  const ages = all.flatMap(({ age }) => age ?? []).toSorted((a, b) => ageRank(b) - ageRank(a))
  const [oldest] = ages
  return {
    objects: all.map(({ objects }) => objects).reduce(plus, 0),
    bytes: quantityOf(all.map(({ bytes }) => shownBytes(bytes)).reduce(plus, 0)),
    ...(oldest !== undefined && { age: oldest }),
    hits: twoDigits(all.map(({ hits }) => hits).reduce(plus, 0)),
  }
}

function plus(a: number, b: number): number {
  return a + b
}

/** The bytes of a text of `quantityOf`, which may have a point. */
function shownBytes(quantity: string): number {
  const [, whole = '0', tenth = '0', unit = ''] = /^(\d+)(?:\.(\d))?([KMG]i)?$/.exec(quantity) ?? []
  return (Number(`${whole}.${tenth}`) || 0) * (bytesOf(`1${unit}`) ?? 1)
}

/** Condition ReadCacheReady, from the entries of all replicas. @param resources of spec.cache in force: `pods`, `deployments.apps` */
export function readCacheVerdict(
  resources: readonly string[],
  gateways: readonly GatewayStatus[],
): Pick<Condition, 'status' | 'reason' | 'message'> {
  const wanted = new Set(resources)
  const entries = gateways.flatMap(({ name, cache = [] }) =>
    cache.filter(({ resource }) => wanted.has(resource)).map((entry) => ({ replica: name, entry })),
  )
  const known = new Set(entries.map(({ entry }) => entry.resource))
  const bad = entries
    .filter(({ entry }) => entry.state !== 'Serving')
    .toSorted((a, b) => cacheStateRank(a.entry.state) - cacheStateRank(b.entry.state))
  const [worst] = bad
  if (worst !== undefined && worst.entry.state !== 'Loading') {
    const faults = bad.filter(({ entry }) => entry.state !== 'Loading')
    const message = joinedMessages(faultTexts(faults, gateways.length))
    return { status: 'False', reason: worst.entry.state, message }
  }
  if (bad.length > 0 || known.size < wanted.size) {
    const loading = new Set([
      ...bad.map(({ entry }) => entry.resource),
      ...[...wanted].filter((one) => !known.has(one)),
    ])
    const why = joinedMessages(faultTexts(bad, gateways.length))
    const message = why === '' ? `being read: ${[...loading].join(', ')}` : why
    return { status: 'Unknown', reason: 'Loading', message }
  }
  return { status: 'True', reason: 'Serving', message: `lists and watches of ${[...wanted].join(', ')} are answered` }
}

interface FaultyEntry {
  readonly replica: string
  readonly entry: CachedResourceStatus
}

/** A fault that all replicas have is listed once. */
function faultTexts(faults: readonly FaultyEntry[], replicas: number): readonly string[] {
  const texts = Map.groupBy(
    faults.filter(({ entry }) => entry.message !== undefined),
    ({ entry }) => entry.message ?? '',
  )
  return Array.from(texts, ([message, same]) =>
    same.length >= replicas ? message : `${same.map(({ replica }) => replica).join(', ')}: ${message}`,
  )
}
