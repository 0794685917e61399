// What has happened in a collection lately, for watches that begin in the past and for those that are a little behind.

import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import { atVersion, type EventType, eventLine } from '../core/bytes/answers.ts'
import type { CachedObject } from './cached-object.ts'

/** As long as kube-apiserver keeps it at least. */
export const HISTORY_MS = 75_000
export const HISTORY_BYTES: number = 8 * 1024 * 1024

/** One change. Its lines exist once, for all watches that get them. */
export class CachedChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: CachedObject
  /** What it was before; undefined = it was not. */
  readonly before: CachedObject | undefined
  readonly atMs: number
  readonly #lines: Partial<Record<EventType | 'LEFT', Buffer>> = {}

  constructor(type: CachedChange['type'], object: CachedObject, before: CachedObject | undefined, atMs: number) {
    this.type = type
    this.object = object
    this.before = before
    this.atMs = atMs
  }

  get resourceVersion(): string {
    return this.object.facts.resourceVersion
  }

  get bytes(): number {
    return this.object.bytes + (this.before?.bytes ?? 0)
  }

  /**
   * What a watch of those that `selects` names gets of it (apiserver/pkg/storage/cacher/cache_watcher.go convertToWatchEvent): what leaves its
   * selection is deleted, and shown as it was before.
   */
  lineFor(selects: (object: CachedObject) => boolean): Buffer | undefined {
    const { type, object, before } = this
    const was = before !== undefined && selects(before)
    if (type === 'DELETED') return was ? this.#line('DELETED') : undefined
    const is = selects(object)
    if (is) return this.#line(was ? 'MODIFIED' : 'ADDED')
    return was ? this.#left(before) : undefined
  }

  #line(type: 'ADDED' | 'MODIFIED' | 'DELETED'): Buffer {
    this.#lines[type] ??= eventLine(type, this.object.json)
    return this.#lines[type]
  }

  #left(before: CachedObject): Buffer {
    this.#lines.LEFT ??= eventLine('DELETED', atVersion(before, this.resourceVersion).json)
    return this.#lines.LEFT
  }
}

export class History {
  readonly #changes: CachedChange[] = []
  /** Index of the first change that is still there. */
  #first = 0
  #bytes = 0
  /** All later changes are there. */
  #since: string

  constructor(since: string) {
    this.#since = since
  }

  /** Index behind the last change. */
  get end(): number {
    return this.#first + this.#changes.length
  }

  add(change: CachedChange): void {
    this.#changes.push(change)
    this.#bytes += change.bytes
    this.#trim(change.atMs)
  }

  trim(nowMs: number): void {
    this.#trim(nowMs)
  }

  /** undefined = it is gone. */
  at(index: number): CachedChange | undefined {
    return this.#changes[index - this.#first]
  }

  has(index: number): boolean {
    return index >= this.#first
  }

  /** Index of the first change behind `version`; undefined = some are gone. */
  behind(version: string): number | undefined {
    const order = compareResourceVersions(version, this.#since)
    if (order === undefined || order < 0) return undefined
    let low = 0
    let high = this.#changes.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((compareResourceVersions(this.#changes[middle]?.resourceVersion ?? '', version) ?? 1) > 0) high = middle
      else low = middle + 1
    }
    return this.#first + low
  }

  /** Bytes of the changes from this index on. */
  bytesFrom(index: number, most: number): number {
    let bytes = 0
    for (let at = Math.max(0, index - this.#first); at < this.#changes.length && bytes <= most; at++)
      bytes += this.#changes[at]?.object.bytes ?? 0
    return bytes
  }

  #trim(nowMs: number): void {
    let count = 0
    for (const change of this.#changes) {
      if (this.#bytes <= HISTORY_BYTES && nowMs - change.atMs <= HISTORY_MS) break
      this.#bytes -= change.bytes
      this.#since = change.resourceVersion
      count++
    }
    if (count === 0) return
    this.#changes.splice(0, count)
    this.#first += count
  }
}
