// One collection in a gateway thread: its objects in the order of their keys, its history, and who waits for more.

import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import { type BookmarkMaker, bookmarkMaker } from '../core/bytes/bookmarks.ts'
import type { ObjectForm, TypeMeta } from '../core/bytes/object-form.ts'
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
import { CompressedLists } from './compressed-lists.ts'
import { CachedChange, History } from './history.ts'
import { indexOfKey, type ObjectRange } from './object-range.ts'

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
  readonly form: ObjectForm
  /** Watches that clients have open. */
  readonly watchers = new Set<CollectionWatcher>()
  /** Called after each change, before watchers are told. */
  readonly followers = new Set<() => void>()
  readonly history: History
  readonly compressed = new CompressedLists()
  number: number
  #version: string
  #isNamespaced = false
  #bytes = 0
  #objects = new Map<string, CachedObject>()
  /** In the order of keys. */
  #sorted: CachedObject[]
  /** It may still be read when something changes: then it is copied. */
  #isLent = false
  readonly #segments = new Map<number, Buffer>()
  readonly #waiting = new Set<Waiting>()
  #warnings: readonly string[]
  #bookmarks: BookmarkMaker
  #fields: SelectableFields
  /** Since when it cannot be followed; undefined = it can. */
  #awayMs: number | undefined
  #isGone = false

  constructor(reset: CollectionReset, nowMs: number) {
    const { collection, epoch, number, list, form, resourceVersion, bookmark, segments, objects, followed, warnings } =
      reset
    this.id = collection
    this.epoch = epoch
    this.number = number
    this.list = list
    this.form = form
    this.#version = resourceVersion
    this.#warnings = warnings
    this.history = new History(resourceVersion)
    this.#fields = selectableFields({ ...collection, namespaced: false })
    this.#bookmarks = this.#bookmarksAs(bookmark)
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

  get bookmarks(): BookmarkMaker {
    return this.#bookmarks
  }

  /** Warning header fields that each answer has. */
  get warnings(): readonly string[] {
    return this.#warnings
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Whether any object has a namespace: without objects that is not known. */
  get isNamespaced(): boolean {
    return this.#isNamespaced
  }

  /** Bytes of all objects, in their encoding. */
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

  /** Whether this is what the object is now. */
  has(object: CachedObject): boolean {
    return !this.#isGone && this.#objects.get(object.key) === object
  }

  /**
   * The objects of a namespace, until anything changes.
   * @param namespace '' = all
   */
  range(namespace: string): ObjectRange {
    const objects = this.#sorted
    if (namespace === '') return { objects, from: 0, to: objects.length }
    // The character behind the slash.
    return { objects, from: this.#indexOf(`${namespace}/`), to: this.#indexOf(`${namespace}0`) }
  }

  /** Names that begin with `start`, each once: of the namespaces that objects are in, or of objects that are in none. */
  *names(start: string): Generator<string, undefined> {
    for (let at = this.#indexOf(start); at < this.#sorted.length; ) {
      const { namespace = '', name = '' } = this.#sorted[at]?.facts ?? {}
      const found = namespace === '' ? name : namespace
      if (!found.startsWith(start)) return
      yield found
      at = namespace === '' ? at + 1 : this.range(namespace).to
    }
  }

  /** The present ranges stay as they are, whatever changes later. */
  lend(): void {
    this.#isLent = true
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
    if (news.bookmark !== undefined) this.#bookmarks = this.#bookmarksAs(news.bookmark)
    if (news.afterGap) this.history.addGap(this.#version, news.resourceVersion)
    this.#version = news.resourceVersion
    this.#warnings = news.warnings
    this.#setFollowed(news.followed, nowMs)
    this.history.trim(nowMs)
    for (const waiting of this.#waiting) if (this.isAtLeast(waiting.version)) waiting.done(true)
    for (const changed of this.followers) changed()
    for (const watcher of this.watchers) watcher.changed()
  }

  end(): void {
    this.#isGone = true
    this.compressed.end()
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
    if (before !== undefined) this.compressed.forget(before)
    if (type === 'DELETED') {
      this.#objects.delete(key)
      this.#bytes -= object.bytes
    }
    if (!isBulk) this.#insert(key, type === 'DELETED' ? undefined : object, before !== undefined)
    this.history.add(new CachedChange(type, object, before, nowMs))
  }

  /** @param object undefined = it is gone @param was it has a place */
  #insert(key: string, object: CachedObject | undefined, was: boolean): void {
    if (this.#isLent) this.#sorted = this.#sorted.slice()
    this.#isLent = false
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
    this.#isLent = false
  }

  #indexOf(key: string): number {
    return indexOfKey({ objects: this.#sorted, from: 0, to: this.#sorted.length }, key)
  }

  #bookmarksAs(bookmark: Uint8Array | undefined): BookmarkMaker {
    const { kind, apiVersion } = this.list
    return bookmarkMaker(this.form, { kind: kind.replace(/List$/, ''), apiVersion }, bookmark)
  }
}
