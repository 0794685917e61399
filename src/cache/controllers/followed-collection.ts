// One collection in the main thread: follows it, keeps each object's bytes once, and tells the gateway threads what changes.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import type { FollowEvents, Following, ObjectClient, RawObjects } from '../../kube/api/object-client.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { OBJECT } from '../../kube/core/answers/answer-limits.ts'
import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import { atVersion } from '../core/bytes/answers.ts'
import { malformed } from '../core/bytes/malformed.ts'
import { FactsReader, isKeepableVersion, type ObjectFacts } from '../core/bytes/object-facts.ts'
import { type ListFacts, ListSplitter } from '../core/bytes/split-list.ts'
import { readEvent } from '../core/bytes/watch-event.ts'
import type {
  CollectionChange,
  CollectionId,
  CollectionNews,
  CollectionReset,
  ObjectRecord,
} from '../core/changes/collection.ts'
import { resourceLabel } from '../core/changes/collection.ts'
import { differenceOf } from '../core/changes/difference.ts'
import { selectableFields } from '../core/fields/selectable-fields.ts'
import { objectKey } from '../core/keys/object-key.ts'
import { Segments } from '../io/segments.ts'

/** Why a collection is not kept. */
export type CacheDropReason = 'over-budget' | 'unreadable' | 'went-back'

interface FollowedDeps {
  readonly client: Pick<ObjectClient, 'follow'>
  readonly publish: (news: CollectionNews) => void
  /** It keeps nothing and follows nothing any more. */
  readonly dropped: (reason: CacheDropReason, message: string) => void
  readonly clock: Clock
  readonly log: Logger
}

interface FollowedLimits {
  readonly maxBytes: number
}

/** A larger one is not used as a template: each watch gets one a minute. Those of kube-apiserver have some hundred bytes. */
export const MAX_BOOKMARK_BYTES: number = 4 * 1024
/** About: of facts without any text, and of one label without its text. */
const FACTS_BYTES = 500
const LABEL_BYTES = 64
/** Objects of a page: more than any page that is asked for has. */
const MOST_OF_A_PAGE = 10_000
/** What stands in a record's place in the follower. */
interface Kept extends JsonObject {
  readonly record: ObjectRecord
}

let epochs = 0

export class FollowedCollection implements FollowEvents {
  readonly id: CollectionId
  readonly #limits: FollowedLimits
  readonly #deps: FollowedDeps
  readonly #reader: FactsReader
  readonly #segments = new Segments()
  readonly #following: Following
  /** Memory in each thread for the facts of all objects that the segments have. */
  #indexBytes = 0
  #objects = new Map<string, ObjectRecord>()
  /** Objects of the list that is being read, which are new. */
  #listing: ObjectRecord[] = []
  #list: ListFacts | undefined
  /** What the threads have been told that its lists are like. */
  #frame = ''
  #version = ''
  #bookmark: Uint8Array | undefined
  #newBookmark = false
  #followed = false
  #message = 'not read yet'
  /** 0 = nothing has been told. */
  #epoch = 0
  #number = 0
  #changes: CollectionChange[] = []
  /** Released once the threads know of the changes. */
  #released: ObjectRecord[] = []
  #flushing = false
  #isDropped = false
  /** When upstream last said something: monotonic. */
  #heardMs: number
  #waiting: (() => void)[] = []

  constructor(id: CollectionId, limits: FollowedLimits, deps: FollowedDeps) {
    this.id = id
    this.#limits = limits
    this.#deps = deps
    this.#heardMs = deps.clock.monotonic()
    this.#reader = new FactsReader(selectableFields({ ...id, namespaced: true }).kept)
    this.#following = deps.client.follow(kindOf(id), id.namespace, this, {
      transform: (_, bytes) => this.#keep(bytes),
      raw: this.#raw(),
      keepsPlace: true,
    })
  }

  get objects(): number {
    return this.#objects.size
  }

  get bytes(): number {
    return this.#segments.bytes
  }

  get ageMs(): number {
    return this.#deps.clock.monotonic() - this.#heardMs
  }

  /** '' = followed. */
  get message(): string {
    return this.#followed ? '' : this.#message
  }

  /** Everything up to this version has been told; '' = nothing yet. */
  get version(): string {
    return this.#epoch === 0 ? '' : this.#version
  }

  async stop(): Promise<void> {
    this.#isDropped = true
    this.#wake()
    await this.#following.stop()
  }

  /** Tells threads that know nothing of it. */
  tellAll(): void {
    if (this.#epoch === 0 || this.#isDropped) return
    this.#flush()
    this.#reset()
  }

  /** Resolves when everything up to `version` is known, or after `ms`, or when it is not followed any more. */
  async reaches(version: string, ms: number): Promise<boolean> {
    const endsMs = this.#deps.clock.monotonic() + ms
    while (!this.#isDropped && !isAtLeast(this.#version, version)) {
      const restMs = endsMs - this.#deps.clock.monotonic()
      if (restMs <= 0) return false
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, restMs)
      this.#waiting.push(resolve)
      await promise
      clearTimeout(timer)
    }
    return !this.#isDropped
  }

  /** Another watch has shown that nothing has happened since the last change, up to `version`. */
  advance(version: string): void {
    if (!isKeepableVersion(version) || isAtLeast(this.#version, version)) return
    this.#version = version
    this.#flush()
  }

  /** The cluster has lost what it has told. */
  wentBack(): void {
    this.#drop('went-back', 'the cluster has gone back in time')
  }

  #raw(): RawObjects {
    return {
      itemsOf: (page) => {
        const items: Buffer[] = []
        const splitter = new ListSplitter({ objectBytes: OBJECT.bytes, objects: MOST_OF_A_PAGE }, (object) =>
          items.push(Buffer.from(object)),
        )
        splitter.feed(page)
        this.#list = splitter.end()
        return items
      },
      objectOf: (event) => {
        try {
          return readEvent(event).object
        } catch {
          return Buffer.alloc(0)
        }
      },
      onBookmark: (event) => {
        try {
          const { object } = readEvent(event)
          if (object.length > MAX_BOOKMARK_BYTES) return
          this.#reader.readBookmark(object)
          if (this.#bookmark === undefined) this.#newBookmark = true
          this.#bookmark ??= new Uint8Array(object)
        } catch {
          // Its version is what counts.
        }
      },
    }
  }

  /** An object that cannot be read ends the collection: what it is now is unknown. */
  #keep(bytes: Buffer | undefined): Kept {
    const none = { record: NOTHING }
    if (this.#isDropped) return none
    try {
      const facts = this.#reader.read(bytes ?? Buffer.alloc(0))
      // An item of a list could not be made of it.
      if (this.#list?.form === 'declared' && facts.bare === 0)
        throw malformed('an object has no kind and apiVersion at its beginning')
      const before = this.#objects.get(keyOf(facts))
      if (before?.facts.resourceVersion === facts.resourceVersion && before.facts.uid === facts.uid)
        return { record: before }
      const record = this.#put(facts, bytes ?? Buffer.alloc(0))
      this.#listing.push(record)
      if (Math.max(this.#segments.bytes, this.#indexBytes) > this.#limits.maxBytes) {
        this.#drop(
          'over-budget',
          `its objects, or their labels and names, take more than ${this.#limits.maxBytes} bytes (maxBytes)`,
        )
      }
      return { record }
    } catch (error) {
      this.#drop('unreadable', errorMessage(error))
      return none
    }
  }

  /** A list that was begun again. */
  onPage(_: readonly JsonObject[], first: boolean): void {
    if (!first) return
    const latest = new Set(_.map(recordOf))
    const old = this.#listing.filter((record) => !latest.has(record))
    this.#listing = this.#listing.filter((record) => latest.has(record))
    for (const record of old) this.#release(record)
  }

  onReplace(all: readonly JsonObject[]): void {
    if (this.#isDropped) return
    this.#listing = []
    const listed = new Map(all.map((one) => [keyOf(recordOf(one).facts), recordOf(one)] as const))
    const version = this.#list?.resourceVersion ?? ''
    this.#heardMs = this.#deps.clock.monotonic()
    if (this.#list === undefined || !isKeepableVersion(version)) {
      this.#drop('unreadable', 'the list has no decimal resourceVersion, or a very long one')
      return
    }
    if (this.#epoch === 0) {
      this.#objects = listed
      this.#version = version
      this.#epoch = ++epochs
      this.#followed = true
      this.#reset()
      return
    }
    if (!isAtLeast(version, this.#version)) {
      this.wentBack()
      return
    }
    if (JSON.stringify(frameOf(this.#list)) !== this.#frame) {
      // Threads have the old ones, and objects that are kept may lack what the new form needs.
      this.#drop('unreadable', 'the kind, the version or the form of its lists has changed')
      return
    }
    const changes = differenceOf(this.#objects, listed, version)
    const [first] = changes
    if (first !== undefined && isAtLeast(this.#version, first.resourceVersion)) {
      this.#drop('went-back', 'a list has changes that are older than what was known')
      return
    }
    for (const change of changes) {
      const { type, resourceVersion, object } = change
      this.#apply(type, type === 'DELETED' ? this.#at(object, resourceVersion) : object)
    }
    this.#version = version
    this.#flush()
  }

  onChange(type: 'ADDED' | 'MODIFIED' | 'DELETED', one: JsonObject): void {
    if (this.#isDropped) return
    this.#listing = []
    const record = recordOf(one)
    const { facts } = record
    if (isAtLeast(this.#version, facts.resourceVersion)) {
      this.#drop('went-back', 'a watch brought a change that is older than what was known')
      return
    }
    const before = this.#objects.get(keyOf(facts))
    if (type === 'DELETED') {
      if (before !== undefined) this.#apply('DELETED', record)
      else this.#released.push(record)
    } else if (before !== undefined && before.facts.uid !== facts.uid) {
      // Its deletion should have come before.
      this.#drop('unreadable', 'an object was replaced by another of its name without being deleted')
      return
    } else this.#apply(before === undefined ? 'ADDED' : 'MODIFIED', record)
    this.#flushSoon()
  }

  onVersion(version: string): void {
    if (this.#isDropped) return
    this.#heardMs = this.#deps.clock.monotonic()
    if (!isKeepableVersion(version)) {
      this.#drop('unreadable', 'a bookmark has no decimal resourceVersion, or a very long one')
      return
    }
    if (isAtLeast(this.#version, version)) return
    this.#version = version
    this.#flushSoon()
  }

  onState(followed: boolean, message: string): void {
    if (this.#isDropped) return
    this.#message = message
    if (followed === this.#followed) return
    this.#followed = followed
    this.#flushSoon()
  }

  #apply(type: CollectionChange['type'], object: ObjectRecord): void {
    const key = keyOf(object.facts)
    const before = this.#objects.get(key)
    if (type === 'DELETED') {
      this.#objects.delete(key)
      // No read finds it any more; watches get its deletion.
      this.#released.push(object)
    } else this.#objects.set(key, object)
    if (before !== undefined) this.#released.push(before)
    this.#changes.push({ type, object })
  }

  #put(facts: ObjectFacts, bytes: Buffer): ObjectRecord {
    this.#indexBytes += indexBytes(facts)
    return { facts, ...this.#segments.put(bytes) }
  }

  #release(record: ObjectRecord): void {
    this.#indexBytes -= indexBytes(record.facts)
    this.#segments.release(record)
  }

  #at(record: ObjectRecord, resourceVersion: string): ObjectRecord {
    const { json, facts } = atVersion({ json: this.#segments.read(record), facts: record.facts }, resourceVersion)
    return this.#put(facts, json)
  }

  #flushSoon(): void {
    if (this.#flushing) return
    this.#flushing = true
    setImmediate(() => {
      this.#flushing = false
      this.#flush()
    })
  }

  #flush(): void {
    if (this.#isDropped || this.#epoch === 0) return
    const moved = this.#rewrite()
    const { segments, dropped } = this.#segments.takeNews()
    const changes = this.#changes
    this.#changes = []
    this.#deps.publish({
      type: 'update',
      collection: this.id,
      epoch: this.#epoch,
      number: ++this.#number,
      resourceVersion: this.#version,
      changes,
      moved,
      segments,
      dropped,
      bookmark: this.#newBookmark ? this.#bookmark : undefined,
      followed: this.#followed,
    })
    this.#newBookmark = false
    for (const record of this.#released) this.#release(record)
    this.#released = []
    this.#wake()
  }

  /** Moves what is left in sparse segments. */
  #rewrite(): readonly ObjectRecord[] {
    const sparse = this.#segments.sparse()
    if (sparse.size === 0) return []
    const moved: ObjectRecord[] = []
    for (const [key, record] of this.#objects) {
      if (!sparse.has(record.segment)) continue
      const at = this.#put(record.facts, this.#segments.read(record))
      this.#objects.set(key, at)
      this.#released.push(record)
      moved.push(at)
    }
    return moved
  }

  #reset(): void {
    const { list, form } = frameOf(this.#list)
    this.#frame = JSON.stringify({ list, form })
    this.#segments.takeNews()
    this.#newBookmark = false
    this.#deps.publish({
      type: 'reset',
      collection: this.id,
      epoch: this.#epoch,
      number: this.#number,
      list,
      form,
      resourceVersion: this.#version,
      bookmark: this.#bookmark,
      segments: this.#segments.all,
      objects: [...this.#objects.values()],
      followed: this.#followed,
    })
    this.#wake()
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const go of waiting) go()
  }

  #drop(reason: CacheDropReason, message: string): void {
    if (this.#isDropped) return
    this.#isDropped = true
    const { cluster } = this.id
    this.#deps.log.warn('the read cache drops a resource', {
      cluster,
      resource: resourceLabel(this.id),
      reason,
      message,
    })
    this.#objects = new Map()
    this.#listing = []
    this.#deps.publish({ type: 'gone', collection: this.id })
    this.#wake()
    void this.#following.stop()
    this.#deps.dropped(reason, message)
  }
}

function frameOf(facts: ListFacts | undefined): Pick<CollectionReset, 'list' | 'form'> {
  const { kind = '', apiVersion = '', form = 'sorted' } = facts ?? {}
  return { list: { kind, apiVersion }, form }
}

const NOTHING: ObjectRecord = Object.freeze({
  facts: {
    kind: '',
    apiVersion: '',
    namespace: '',
    name: '',
    uid: '',
    resourceVersion: '',
    labels: {},
    fields: [],
    metadata: { start: 0, end: 0 },
    version: { start: 0, end: 0 },
    bare: 0,
  },
  segment: 0,
  offset: 0,
  length: 0,
})

/** About what the facts of an object take in the memory of a thread: many short labels take several times as much as their JSON. */
function indexBytes({ namespace, name, labels, fields }: ObjectFacts): number {
  let bytes = FACTS_BYTES + namespace.length + name.length
  for (const [key, value] of Object.entries(labels)) bytes += LABEL_BYTES + key.length + value.length
  for (const value of fields) bytes += value.length
  return bytes
}

function recordOf(one: JsonObject): ObjectRecord {
  return (one as Kept).record
}

function keyOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return objectKey(namespace, name)
}

/** A version that is not a number is never known. */
function isAtLeast(version: string, wanted: string): boolean {
  const order = compareResourceVersions(version, wanted)
  return order !== undefined && order >= 0
}

/** Enough to name its paths. */
export function kindOf({ group, version, resource, namespace }: CollectionId): ResourceKind {
  return {
    group,
    version,
    kind: resource,
    listKind: resource,
    plural: resource,
    singular: resource,
    shortNames: [],
    categories: [],
    namespaced: namespace !== '',
    hasStatus: false,
    hasGeneration: false,
    schema: { type: 'object' },
    columns: [],
    selectableFields: [],
    check: () => [],
  }
}
