// Learns the sizes of lists from a cluster's responses: per resource, per namespace or all, and per selector shape. One table per thread,
// synchronised through the main thread. Only lists of more than one seat are stored: any other costs one.

import { Buffer } from 'node:buffer'
import type { ListAnswer, ListRequest, ListSize } from '../../api/list-request.ts'
import { BYTES_PER_SEAT } from './seats.ts'
import { isNarrow, type SelectorShape, WHOLE_LIST } from './selector-shape.ts'

/** Minimum items of a page to estimate item size: a single unusual object must not decide. */
const SAMPLE = 50
/** Assumed bytes per item, until a page has been seen. */
export const ASSUMED_ITEM_BYTES = 4_000
/** Maximum lists stored per cluster; beyond that, the one seen longest ago is evicted. */
export const MAX_LISTS = 512
/** A smaller response counts only if the largest is this old: the same list in another format is smaller, too. */
export const LARGEST_MS: number = 10 * 60_000
/** A change by this factor is shared at once, any other if the last update is this old. */
const CHANGED = 1.1
const REFRESH_MS = 30_000
/** Weight of a new response in the running mean of a narrow selector. */
const MEAN_WEIGHT = 0.25

/** Identifies a list. */
export type ListKey = Pick<ListSize, 'apiGroup' | 'resource' | 'namespace' | 'shape'>

/** Without the selector shape, which is computed only where it matters. */
type ListedResource = Omit<ListKey, 'shape'>

/** What a response reveals. 0 = unknown. */
interface ListSeen {
  /** Size of the whole list; a lower bound if `partial`. */
  readonly bytes: number
  readonly partial: boolean
  readonly items: number
  readonly itemBytes: number
  readonly nowMs: number
}

interface Entry extends ListSize {
  /** The size last shared with other threads. */
  toldBytes: number
  toldMs: number
}

export class ListSizes {
  readonly #byResource = new Map<string, Entry[]>()
  #count = 0
  /** Called with what the other threads should know. */
  onLearned: ((size: ListSize) => void) | undefined = undefined

  find({ apiGroup, resource, namespace }: ListedResource, list: Pick<ListKey, 'shape'>): ListSize | undefined {
    const entries = this.#byResource.get(resource)
    // If nothing is known, no shape is needed.
    if (entries === undefined) return undefined
    const { shape } = list
    const entry = entryOf(entries, apiGroup, namespace, shape)
    if (shape === WHOLE_LIST || isNarrow(shape)) return entry
    // An exclusion is about as large as everything: otherwise every other exclusion would be an unknown list.
    const everything = entryOf(entries, apiGroup, namespace, WHOLE_LIST)
    return entry === undefined || (everything?.bytes ?? 0) > entry.bytes ? everything : entry
  }

  /** Learns from a response of this thread. */
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

  /** Merges what another thread has learned. */
  merge(size: Omit<ListSize, 'relearnMs'>): void {
    const known = this.#entry(size)
    // After the clock was set back, older observations only look newer.
    if (known !== undefined && known.seenMs > size.seenMs && isRecent(known, size.seenMs)) return
    const entry = known ?? this.#add(size, size.seenMs)
    const { bytes, items, itemBytes, seenMs } = size
    Object.assign(entry, { bytes, items, itemBytes, seenMs, toldBytes: bytes, toldMs: seenMs })
  }

  get size(): number {
    return this.#count
  }

  /** Largest first. */
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

  /** Lists with selectors are evicted first: a client can invent many of them, and the size of the whole must not be forgotten for them. */
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
  const aSelects = a.shape !== WHOLE_LIST
  return aSelects === (b.shape !== WHOLE_LIST) ? a.seenMs < b.seenMs : aSelects
}

/** Clocks may be set in either direction. */
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
    // A lower bound, or the same list in a smaller format.
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

/**
 * What the response to a list reveals about the size of the whole list: a page reveals the item size and, if it states the number of remaining items, the size of the whole list. kube-apiserver states it only
 * for lists without selectors (metav1.ListMeta.remainingItemCount).
 * @param complete the response was received to its end
 * @param nowMs milliseconds since the epoch
 */
export function seenOf(
  { limit, continued, anyVersion, size }: ListRequest,
  answer: ListAnswer,
  complete: boolean,
  nowMs: number,
): ListSeen {
  const bytes = answer.bytes(complete)
  const behind = limit > 0 && complete ? answer.remainingItems() : 0
  const unknown = { bytes: 0, partial: true, items: 0, itemBytes: 0, nowMs }
  if (behind > 0) {
    const itemBytes = Math.max(1, Math.round(bytes / limit))
    if (limit < SAMPLE) {
      if (continued) return unknown
      const items = limit + behind
      const known = size === undefined || size.itemBytes === 0 ? ASSUMED_ITEM_BYTES : size.itemBytes
      return { ...unknown, bytes: Math.min(itemBytes, known) * items, items }
    }
    // The number of items before this page is unknown.
    if (continued) return { ...unknown, itemBytes }
    const items = limit + behind
    return { bytes: itemBytes * items, partial: false, items, itemBytes, nowMs }
  }
  // The last page, one with unreadable metadata, or a response from the cache, which has no pages.
  if (continued) return unknown
  return { ...unknown, bytes, partial: !complete || (limit > 0 && !anyVersion) }
}

// Measures the response to a list as it passes: keeps only its first two kilobytes, where a page says how many items remain, and its last
// four bytes, where gzip records the original length.

/** kube-apiserver writes a list's metadata before its items. */
const HEAD_BYTES = 2048
const EMPTY: Buffer = Buffer.alloc(0)

/** @param page the response is one page of several: the number of remaining items matters */
export function answerSize(contentEncoding: string, contentType: string, page: boolean): ListAnswer {
  const gzip = contentEncoding === 'gzip'
  return new PassingAnswer(gzip, page && contentEncoding === '' && contentType.startsWith('application/json'))
}

class PassingAnswer implements ListAnswer {
  readonly #gzip: boolean
  readonly #keepsHead: boolean
  #head: Buffer = EMPTY
  #received = 0
  /** The last four bytes, little-endian. */
  #tail = 0

  constructor(gzip: boolean, keepsHead: boolean) {
    this.#gzip = gzip
    this.#keepsHead = keepsHead
  }

  see(chunk: Buffer): void {
    const { length } = chunk
    this.#received += length
    if (this.#gzip) this.#seeTail(chunk)
    else if (this.#keepsHead && this.#head.length < HEAD_BYTES) {
      this.#head = Buffer.concat([this.#head, chunk.subarray(0, HEAD_BYTES - this.#head.length)])
    }
  }

  #seeTail(chunk: Buffer): void {
    const { length } = chunk
    if (length >= 4) this.#tail = chunk.readUInt32LE(length - 4)
    else for (const byte of chunk) this.#tail = ((this.#tail >>> 8) | (byte << 24)) >>> 0
  }

  bytes(complete: boolean): number {
    // ISIZE of RFC 1952, modulo 2^32. In a truncated response these are arbitrary bytes: a client that hangs up must not make a list look
    // large.
    return complete && this.#gzip && this.#tail > this.#received && this.#tail < this.#received * MAX_RATIO
      ? this.#tail
      : this.#received
  }

  remainingItems(): number {
    if (this.#head.length === 0) return 0
    const text = this.#head.toString('latin1')
    const end = /"(?:items|columnDefinitions|rows)":/.exec(text)?.index ?? text.length
    const [, digits = ''] = /"remainingItemCount":(\d{1,12})\b/.exec(text.slice(0, end)) ?? []
    return Number(digits)
  }
}

/** gzip's maximum compression ratio (RFC 1951: 258 bytes in two bits). */
const MAX_RATIO = 1032
