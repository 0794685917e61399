// How large lists are, by what was seen of a cluster's answers: of each resource, of all namespaces or one, and of each shape of selectors.
// One table in each thread; what one learns the others get through the main thread. Only lists of more than a seat are remembered: of any
// other the cost is known to be one.

import type { ListSize } from '../../api/list-request.ts'
import { BYTES_PER_SEAT } from './seats.ts'
import { EVERYTHING, isNarrow, type SelectorShape } from './selector-shape.ts'

/** Lists remembered for a cluster: beyond that, the one seen longest ago goes. */
export const MAX_LISTS = 512
/** A smaller answer counts only when the largest is this old: the same list in another format is smaller, too. */
export const LARGEST_MS: number = 10 * 60_000
/** Others hear of a change by this factor at once, of any other when they last heard this long ago. */
const CHANGED = 1.1
const REFRESH_MS = 30_000
/** Weight of a new answer in the mean of what a narrow selector picks. */
const MEAN_WEIGHT = 0.25

/** Which list. */
export type ListKey = Pick<ListSize, 'apiGroup' | 'resource' | 'namespace' | 'shape'>

/** Without the shape of selectors, which is found out only where it matters. */
export type ListedResource = Omit<ListKey, 'shape'>

/** What an answer shows. 0 = it does not. */
export interface ListSeen {
  /** Of the whole list; at least so much where `partial`. */
  readonly bytes: number
  readonly partial: boolean
  readonly items: number
  readonly itemBytes: number
  readonly nowMs: number
}

interface Entry extends ListSize {
  /** As the others know it. */
  toldBytes: number
  toldMs: number
}

export class ListSizes {
  readonly #byResource = new Map<string, Entry[]>()
  #count = 0
  /** Told what the other threads are to know. */
  onLearned: ((size: ListSize) => void) | undefined = undefined

  find({ apiGroup, resource, namespace }: ListedResource, list: Pick<ListKey, 'shape'>): ListSize | undefined {
    const entries = this.#byResource.get(resource)
    // What is not known at all needs no shape.
    if (entries === undefined) return undefined
    const { shape } = list
    const entry = entryOf(entries, apiGroup, namespace, shape)
    if (shape === EVERYTHING || isNarrow(shape)) return entry
    // What excludes some is about as large as everything: otherwise each other exclusion would be a list of which nothing is known.
    const everything = entryOf(entries, apiGroup, namespace, EVERYTHING)
    return entry === undefined || (everything?.bytes ?? 0) > entry.bytes ? everything : entry
  }

  /** Takes in what an answer of this thread's shows. */
  learn(of: ListedResource, list: Pick<ListKey, 'shape'>, seen: ListSeen): void {
    const { apiGroup, resource, namespace } = of
    const entries = this.#byResource.get(resource)
    if (entries === undefined && seen.bytes < BYTES_PER_SEAT) return
    const key = { apiGroup, resource, namespace, shape: list.shape }
    const known = this.#entry(key)
    if (known === undefined && seen.bytes < BYTES_PER_SEAT) return
    const entry = known ?? this.#add(key, seen.nowMs)
    see(entry, seen)
    if (!isNews(entry, seen.nowMs)) return
    entry.toldBytes = entry.bytes
    entry.toldMs = seen.nowMs
    this.onLearned?.(plain(entry))
  }

  /** Takes in what another thread has learned. */
  merge(size: Omit<ListSize, 'relearnMs'>): void {
    const known = this.#entry(size)
    // After a clock was set back, what was seen before it only looks newer.
    if (known !== undefined && known.seenMs > size.seenMs && isRecent(known, size.seenMs)) return
    const entry = known ?? this.#add(size, size.seenMs)
    const { bytes, items, itemBytes, seenMs } = size
    Object.assign(entry, { bytes, items, itemBytes, seenMs, toldBytes: bytes, toldMs: seenMs })
  }

  get size(): number {
    return this.#count
  }

  /** The largest first. */
  top(most: number = MAX_LISTS): readonly ListSize[] {
    const all = [...this.#byResource.values()].flat()
    return all
      .sort((a, b) => b.bytes - a.bytes)
      .slice(0, most)
      .map(plain)
  }

  #entry({ apiGroup, resource, namespace, shape }: ListKey): Entry | undefined {
    const entries = this.#byResource.get(resource)
    return entries === undefined ? undefined : entryOf(entries, apiGroup, namespace, shape)
  }

  #add({ apiGroup, resource, namespace, shape }: ListKey, nowMs: number): Entry {
    if (this.#count >= MAX_LISTS) this.#evict()
    const entry: Entry = {
      apiGroup,
      resource,
      namespace,
      shape,
      bytes: 0,
      items: 0,
      itemBytes: 0,
      seenMs: nowMs,
      relearnMs: 0,
      toldBytes: 0,
      toldMs: 0,
    }
    const entries = this.#byResource.get(resource)
    if (entries === undefined) this.#byResource.set(resource, [entry])
    else entries.push(entry)
    this.#count++
    return entry
  }

  /** Lists with selectors go first: one client can write many of these, and what everything is must not be forgotten for them. */
  #evict(): void {
    let oldest: Entry | undefined
    for (const entries of this.#byResource.values()) {
      for (const entry of entries) if (oldest === undefined || goesBefore(entry, oldest)) oldest = entry
    }
    if (oldest === undefined) return
    const { resource } = oldest
    const left = (this.#byResource.get(resource) ?? []).filter((entry) => entry !== oldest)
    if (left.length === 0) this.#byResource.delete(resource)
    else this.#byResource.set(resource, left)
    this.#count--
  }
}

function entryOf(
  entries: readonly Entry[],
  apiGroup: string,
  namespace: string,
  shape: SelectorShape,
): Entry | undefined {
  for (const entry of entries) {
    if (entry.namespace === namespace && entry.shape === shape && entry.apiGroup === apiGroup) return entry
  }
  return undefined
}

function goesBefore(a: Entry, b: Entry): boolean {
  const aSelects = a.shape !== EVERYTHING
  return aSelects === (b.shape !== EVERYTHING) ? a.seenMs < b.seenMs : aSelects
}

/** Clocks are set, in both directions. */
function isRecent({ seenMs }: Entry, nowMs: number): boolean {
  return Math.abs(nowMs - seenMs) < LARGEST_MS
}

function see(entry: Entry, { bytes, partial, items, itemBytes, nowMs }: ListSeen): void {
  if (itemBytes > 0) entry.itemBytes = itemBytes
  if (items > 0) entry.items = items
  if (bytes === 0) return
  if (isNarrow(entry.shape) && entry.bytes > 0) {
    if (partial && bytes < entry.bytes) return
    entry.bytes = Math.round(entry.bytes + (bytes - entry.bytes) * MEAN_WEIGHT)
  } else {
    // The least that it can be, or the same list in a smaller format.
    const smaller = bytes < entry.bytes
    if (smaller && (partial || isRecent(entry, nowMs))) return
    entry.bytes = bytes
  }
  entry.seenMs = nowMs
}

function isNews({ bytes, toldBytes, toldMs, seenMs }: Entry, nowMs: number): boolean {
  if (bytes > toldBytes * CHANGED || bytes * CHANGED < toldBytes) return true
  return Math.abs(nowMs - toldMs) >= REFRESH_MS && seenMs === nowMs
}

function plain({ apiGroup, resource, namespace, shape, bytes, items, itemBytes, seenMs }: Entry): ListSize {
  return { apiGroup, resource, namespace, shape, bytes, items, itemBytes, seenMs, relearnMs: 0 }
}
