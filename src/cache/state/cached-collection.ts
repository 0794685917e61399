// One collection in a gateway thread: its objects in the order of their keys, its history, and who waits for more.

import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import { BookmarkTemplate, plainBookmark } from '../core/bytes/answers.ts'
import type { JsonForm, TypeMeta } from '../core/bytes/json-form.ts'
import { FactsReader } from '../core/bytes/object-facts.ts'
import type {
  CollectionId,
  CollectionReset,
  CollectionUpdate,
  ObjectRecord,
  Segment,
} from '../core/changes/collection.ts'
import { type SelectableFields, selectableFields } from '../core/fields/selectable-fields.ts'
import { compareKeys, objectKey } from '../core/keys/object-key.ts'
import { CachedObject } from './cached-object.ts'
import { CachedChange, History } from './history.ts'

/** An open watch, or anything else that wants to know. */
export interface CollectionWatcher {
  /** There are changes, or the version is newer. */
  changed(): void
  /** It is not kept any more. */
  ended(): void
}

interface Waiting {
  readonly version: string
  readonly done: (reached: boolean) => void
}

/** Changes that are inserted one by one: each moves all that are behind it. After more all are sorted again. */
const MOST_INSERTED = 256

export class CachedCollection {
  readonly id: CollectionId
  readonly epoch: number
  readonly list: TypeMeta
  readonly form: JsonForm
  readonly watchers = new Set<CollectionWatcher>()
  readonly history: History
  number: number
  #version: string
  #isNamespaced = false
  #bytes = 0
  #objects = new Map<string, CachedObject>()
  /** In the order of keys. */
  #sorted: CachedObject[]
  readonly #segments = new Map<number, Buffer>()
  readonly #waiting = new Set<Waiting>()
  readonly #reader = new FactsReader([])
  #bookmark: BookmarkTemplate
  #fields: SelectableFields
  /** Since when it cannot be followed; undefined = it can. */
  #awayMs: number | undefined
  #isGone = false

  constructor(reset: CollectionReset, nowMs: number) {
    const { collection, epoch, number, list, form, resourceVersion, bookmark, segments, objects, followed } = reset
    this.id = collection
    this.epoch = epoch
    this.number = number
    this.list = list
    this.form = form
    this.#version = resourceVersion
    this.history = new History(resourceVersion)
    this.#fields = selectableFields({ ...collection, namespaced: false })
    this.#bookmark = this.#templateOf(bookmark)
    this.#take(segments)
    for (const record of objects) this.#put(record)
    this.#sorted = [...this.#objects.values()].sort((a, b) => compareKeys(a.key, b.key))
    this.#setFollowed(followed, nowMs)
  }

  /** Everything up to it is known. */
  get version(): string {
    return this.#version
  }

  get fields(): SelectableFields {
    return this.#fields
  }

  get bookmark(): BookmarkTemplate {
    return this.#bookmark
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Whether any object has a namespace: without objects that is not known. */
  get isNamespaced(): boolean {
    return this.#isNamespaced
  }

  /** Bytes of all objects, as JSON. */
  get bytes(): number {
    return this.#bytes
  }

  get size(): number {
    return this.#sorted.length
  }

  /** How long it has not been followed, milliseconds. */
  awayFor(nowMs: number): number {
    return this.#awayMs === undefined ? 0 : nowMs - this.#awayMs
  }

  get(namespace: string, name: string): CachedObject | undefined {
    return this.#objects.get(objectKey(namespace, name))
  }

  /** @param namespace '' = all */
  select(namespace: string, selects: (object: CachedObject) => boolean): CachedObject[] {
    if (namespace === '') return this.#sorted.filter(selects)
    const found: CachedObject[] = []
    const prefix = `${namespace}/`
    for (let at = this.#indexOf(prefix); at < this.#sorted.length; at++) {
      const one = this.#sorted[at]
      if (one === undefined || !one.key.startsWith(prefix)) break
      if (selects(one)) found.push(one)
    }
    return found
  }

  isAtLeast(version: string): boolean {
    const order = compareResourceVersions(this.#version, version)
    return order !== undefined && order >= 0
  }

  /** Resolves with whether it reaches `version` within `ms`. */
  reaches(version: string, ms: number): Promise<boolean> {
    if (this.isAtLeast(version)) return Promise.resolve(!this.#isGone)
    if (this.#isGone) return Promise.resolve(false)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiting = { version, done: resolve }
    this.#waiting.add(waiting)
    const timer = setTimeout(resolve, ms, false)
    return promise.finally(() => {
      clearTimeout(timer)
      this.#waiting.delete(waiting)
    })
  }

  update(news: CollectionUpdate, nowMs: number): void {
    this.number = news.number
    this.#take(news.segments)
    const isBulk = news.changes.length > MOST_INSERTED
    for (const { type, object } of news.changes) this.#change(type, object, nowMs, isBulk)
    if (isBulk) this.#sortAgain()
    for (const { facts, segment, offset } of news.moved) {
      const there = this.#segments.get(segment)
      const one = this.#objects.get(objectKey(facts.namespace, facts.name))
      if (there !== undefined && one?.facts.resourceVersion === facts.resourceVersion) one.moved(there, offset)
    }
    for (const id of news.dropped) this.#segments.delete(id)
    if (news.bookmark !== undefined) this.#bookmark = this.#templateOf(news.bookmark)
    this.#version = news.resourceVersion
    this.#setFollowed(news.followed, nowMs)
    this.history.trim(nowMs)
    for (const waiting of this.#waiting) if (this.isAtLeast(waiting.version)) waiting.done(true)
    for (const watcher of this.watchers) watcher.changed()
  }

  end(): void {
    this.#isGone = true
    for (const { done } of this.#waiting) done(false)
    for (const watcher of [...this.watchers]) watcher.ended()
  }

  #setFollowed(followed: boolean, nowMs: number): void {
    this.#awayMs = followed ? undefined : (this.#awayMs ?? nowMs)
  }

  #take(segments: readonly Segment[]): void {
    for (const { id, memory } of segments) this.#segments.set(id, Buffer.from(memory))
  }

  #put({ facts, segment, offset, length }: ObjectRecord): CachedObject {
    const key = objectKey(facts.namespace, facts.name)
    if (facts.namespace !== '' && !this.#isNamespaced) {
      this.#isNamespaced = true
      this.#fields = selectableFields({ ...this.id, namespaced: true })
    }
    const object = new CachedObject(key, facts, this.#segments.get(segment) ?? Buffer.alloc(0), offset, length)
    this.#bytes += object.bytes - (this.#objects.get(key)?.bytes ?? 0)
    this.#objects.set(key, object)
    return object
  }

  /** @param isBulk `#sortAgain` follows */
  #change(type: CachedChange['type'], record: ObjectRecord, nowMs: number, isBulk: boolean): void {
    const key = objectKey(record.facts.namespace, record.facts.name)
    const before = this.#objects.get(key)
    const object = this.#put(record)
    if (type === 'DELETED') {
      this.#objects.delete(key)
      this.#bytes -= object.bytes
    }
    if (!isBulk) this.#insert(key, type === 'DELETED' ? undefined : object, before !== undefined)
    this.history.add(new CachedChange(type, object, before, nowMs))
  }

  /** @param object undefined = it is gone @param was it has a place */
  #insert(key: string, object: CachedObject | undefined, was: boolean): void {
    const at = this.#indexOf(key)
    if (object === undefined) {
      if (was) this.#sorted.splice(at, 1)
    } else if (was) this.#sorted[at] = object
    else this.#sorted.splice(at, 0, object)
  }

  /** After any number of changes: what was there is still in order, so that it is compared about once. */
  #sortAgain(): void {
    const rest = new Map(this.#objects)
    const sorted: CachedObject[] = []
    for (const { key } of this.#sorted) {
      const object = rest.get(key)
      if (object === undefined) continue
      rest.delete(key)
      sorted.push(object)
    }
    for (const object of rest.values()) sorted.push(object)
    this.#sorted = sorted.sort((a, b) => compareKeys(a.key, b.key))
  }

  /** Index of the first whose key is not in front of this one. */
  #indexOf(key: string): number {
    let low = 0
    let high = this.#sorted.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (compareKeys(this.#sorted[middle]?.key ?? '', key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  #templateOf(bookmark: Uint8Array | undefined): BookmarkTemplate {
    const { kind, apiVersion } = this.list
    const type = { kind: kind.replace(/List$/, ''), apiVersion }
    const bytes = bookmark === undefined ? plainBookmark(type, this.form) : Buffer.from(bookmark)
    return new BookmarkTemplate(bytes, this.form, this.#reader)
  }
}
