// One collection in the main thread: follows it, keeps each object's bytes once, and tells the gateway threads what changes.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { clusterCharge } from '../../kit/core/shares/charge.ts'
import type { FollowEvents, Following, ObjectClient, RawEvent, RawObjects } from '../../kube/api/object-client.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { OBJECT } from '../../kube/core/answers/answer-limits.ts'
import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import { OutgrownError } from '../../kube/io/followed-bytes.ts'
import { malformed } from '../core/bytes/malformed.ts'
import { isKeepableVersion } from '../core/bytes/object-facts.ts'
import { type EncodingReader, jsonReader, protobufReader, type ReadList } from '../core/bytes/read-encoding.ts'
import type { EventBytes } from '../core/bytes/watch-event.ts'
import {
  type CollectionChange,
  type CollectionId,
  type CollectionNews,
  type CollectionReset,
  keptWarnings,
  type ObjectRecord,
  resourceLabel,
} from '../core/changes/collection.ts'
import { differenceOf } from '../core/changes/difference.ts'
import type { ListedObject } from '../core/changes/listed-object.ts'
import { selectableFields } from '../core/fields/selectable-fields.ts'
import { objectKey } from '../core/keys/object-key.ts'
import { KeptMemory } from './kept-memory.ts'
import { ObjectRecords } from './object-records.ts'

/** Why a collection is not kept. */
export type CacheDropReason = 'over-budget' | 'no-room' | 'unreadable' | 'went-back'

interface FollowedDeps {
  readonly client: Pick<ObjectClient, 'follow'>
  readonly publish: (news: CollectionNews) => void
  /** It keeps nothing and follows nothing any more. */
  readonly dropped: (reason: CacheDropReason, message: string) => void
  /** A watch goes on from a version that the cluster may not have any more, if it has gone back in time: a kube-apiserver is silent then. */
  readonly resumed: () => void
  readonly clock: Clock
  readonly log: Logger
}

interface FollowedLimits {
  readonly maxBytes: number
  /** Gateway threads, each of which knows of all objects. */
  readonly threads: number
}

/** A larger one is not used as a template: each watch gets one a minute. Those of kube-apiserver have some hundred bytes. */
export const MAX_BOOKMARK_BYTES: number = 4 * 1024
/** Objects of a page: more than any page that is asked for has. */
const MOST_OF_A_PAGE = 10_000
const NOT_FOUND = 404
/** How long there is room for compressed lists that no client asks for. */
export const ROOM_IDLE_MS = 600_000
type TypeOfLists = Pick<ReadList, 'kind' | 'apiVersion' | 'form'>

/** What stands in a record's place in the follower. */
interface Kept extends JsonObject {
  readonly record: ObjectRecord
}

let epochs = 0

export class FollowedCollection implements FollowEvents {
  readonly id: CollectionId
  readonly #limits: FollowedLimits
  readonly #deps: FollowedDeps
  readonly #reader: EncodingReader
  readonly #records: ObjectRecords
  readonly #following: Following
  #objects = new Map<string, ObjectRecord>()
  /** Objects of the list that is being read, which are new. */
  #listing: ObjectRecord[] = []
  #list: Omit<ReadList, 'objects'> | undefined
  /** What the threads have been told that its lists are like. */
  #frame = ''
  #version = ''
  #bookmark: Uint8Array | undefined
  #newBookmark = false
  #followed = false
  #warnings: readonly string[] = []
  #message = ''
  /** Code of the cluster's refusal; 0 = none. */
  #refusal = 0
  /** 0 = nothing has been told. */
  #epoch = 0
  #number = 0
  #changes: CollectionChange[] = []
  #flushing = false
  #isDropped = false
  /** When upstream last said something: monotonic. */
  #heardMs: number
  #waiting: (() => void)[] = []
  /** For compressed lists, in each gateway thread: what was asked for last and when, and what they know of. */
  #roomWanted = 0
  #roomWantedMs = 0
  #roomTold = 0

  constructor(id: CollectionId, limits: FollowedLimits, deps: FollowedDeps) {
    this.id = id
    this.#limits = limits
    this.#records = new ObjectRecords(new KeptMemory(clusterCharge(id.cluster), limits.threads, () => this.#tellRoom()))
    this.#deps = deps
    this.#heardMs = deps.clock.monotonic()
    const { kept } = selectableFields({ ...id, namespaced: true })
    this.#reader = id.encoding === 'json' ? jsonReader(kept) : protobufReader(kept)
    this.#following = deps.client.follow(kindOf(id), id.namespace, this, {
      raw: this.#raw(),
      keepsPlace: true,
    })
  }

  get objects(): number {
    return this.#objects.size
  }

  /** With what is kept compressed. */
  get bytes(): number {
    return this.#records.bytes + this.#records.compressedBytes
  }

  get ageMs(): number {
    return this.#deps.clock.monotonic() - this.#heardMs
  }

  /** Whether the cluster tells what changes. */
  get isFollowed(): boolean {
    return this.#followed
  }

  /** Why it is not followed; '' = it is, or has only just begun. */
  get message(): string {
    return this.#followed ? '' : this.#message
  }

  /** The code by which the cluster refuses to be followed: 403, 404; 0 = it does not. */
  get refusal(): number {
    return this.#followed ? 0 : this.#refusal
  }

  /** Everything up to this version has been told; '' = nothing yet. */
  get version(): string {
    return this.#epoch === 0 || this.#isDropped ? '' : this.#version
  }

  /** A gateway thread could keep so much of the lists that clients get compressed. */
  wantRoom(bytes: number): void {
    if (this.version === '') return
    this.#roomWanted = Math.max(this.#roomWanted, bytes)
    this.#roomWantedMs = this.#deps.clock.monotonic()
    this.#fitRoom(this.#roomWanted)
  }

  /** Time passes: room that is not wanted any more is given back. */
  tick(nowMs: number): void {
    if (this.#roomWanted === 0 || nowMs - this.#roomWantedMs < ROOM_IDLE_MS) return
    this.#roomWanted = 0
    this.#fitRoom(0)
  }

  /** What is kept compressed comes last: the objects may need the memory. Default: as much as there is. */
  #fitRoom(bytes = this.#records.room): void {
    if (bytes > 0 || this.#records.room > 0)
      this.#records.setRoom(Math.min(bytes, this.#limits.maxBytes - this.#records.most))
    this.#tellRoom()
  }

  #tellRoom(): void {
    const { room } = this.#records
    if (room === this.#roomTold || this.version === '') return
    this.#roomTold = room
    this.#deps.publish({ type: 'room', collection: this.id, epoch: this.#epoch, bytes: room })
  }

  async stop(): Promise<void> {
    this.#isDropped = true
    this.#records.end()
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

  /** Whether these are the objects that are known. The threads know of them when this returns. */
  holds(listed: readonly ListedObject[]): boolean {
    if (this.#isDropped || this.#epoch === 0 || listed.length !== this.#objects.size) return false
    const same = listed.filter(({ namespace, name, uid, resourceVersion }) => {
      const facts = this.#objects.get(objectKey(namespace, name))?.facts
      return facts !== undefined && facts.uid === uid && facts.resourceVersion === resourceVersion
    })
    // Each once.
    if (new Set(same.map(({ uid }) => uid)).size !== this.#objects.size) return false
    if (this.#flushing) this.#flush()
    return true
  }

  /** What the latest answer warns of: kube-apiserver says with each one that the version of the resource is deprecated. */
  warned(values: readonly string[]): void {
    const warnings = keptWarnings(values)
    if (this.#isDropped || isSame(warnings, this.#warnings)) return
    this.#warnings = warnings
    this.#flushSoon()
  }

  /** The cluster has lost what it has told. */
  wentBack(): void {
    this.#drop('went-back', 'the cluster has gone back in time')
  }

  #raw(): RawObjects {
    return {
      encoding: this.id.encoding,
      page: (body) => {
        const { objects, ...list } = this.#reader.list(body, { objectBytes: OBJECT.bytes, objects: MOST_OF_A_PAGE })
        this.#list = list
        const { resourceVersion, next } = list
        return { objects: objects.map((object) => this.#keep(object)), resourceVersion, next }
      },
      event: (bytes) => this.#event(this.#reader.event(bytes)),
    }
  }

  #event({ type, object }: EventBytes): RawEvent {
    if (type === 'ERROR') return { type, resourceVersion: '', object: this.#reader.status(object) }
    if (type === 'BOOKMARK') return { type, resourceVersion: this.#readBookmark(object), object: {} }
    const kept = this.#keep(object)
    return { type, resourceVersion: kept.record.facts.resourceVersion, object: kept }
  }

  /** @returns its version */
  #readBookmark(object: Buffer): string {
    try {
      const resourceVersion = this.#reader.bookmark(object)
      if (object.length <= MAX_BOOKMARK_BYTES && this.#bookmark === undefined) {
        this.#bookmark = new Uint8Array(object)
        this.#newBookmark = true
      }
      return resourceVersion
    } catch (error) {
      this.#drop('unreadable', errorMessage(error))
      return ''
    }
  }

  /** An object that cannot be read ends the collection: what it is now is unknown. */
  #keep(bytes: Buffer): Kept {
    const none = { record: NOTHING }
    if (this.#isDropped) return none
    try {
      const facts = this.#reader.facts(bytes)
      // An item of a list could not be made of it.
      if (this.#list?.form === 'declared' && 'bare' in facts && facts.bare === 0)
        throw malformed('an object has no kind and apiVersion at its beginning')
      const before = this.#objects.get(keyOf(facts))
      if (before !== undefined && isSameState(before, facts) && this.#records.has(before, bytes))
        return { record: before }
      const record = this.#records.put(facts, bytes)
      this.#listing.push(record)
      if (this.#records.most > this.#limits.maxBytes) {
        this.#drop(
          'over-budget',
          `its objects, or their labels and names, take more than ${this.#limits.maxBytes} bytes (maxBytes)`,
        )
      } else this.#fitRoom()
      return { record }
    } catch (error) {
      this.#drop(error instanceof OutgrownError ? 'no-room' : 'unreadable', errorMessage(error))
      return none
    }
  }

  /** A list that was begun again. */
  onPage(_: readonly JsonObject[], first: boolean): void {
    if (!first) return
    const latest = new Set(_.map(recordOf))
    const old = this.#listing.filter((record) => !latest.has(record))
    this.#listing = this.#listing.filter((record) => latest.has(record))
    for (const record of old) this.#records.release(record)
  }

  onReplace(all: readonly JsonObject[]): void {
    if (this.#isDropped) return
    const { listed, isReworded } = this.#listed(all)
    this.#listing = []
    const version = this.#list?.resourceVersion ?? ''
    this.#heardMs = this.#deps.clock.monotonic()
    if (this.#list === undefined || !isKeepableVersion(version)) {
      this.#drop('unreadable', 'the list has no decimal resourceVersion, or a very long one')
      return
    }
    if (this.#epoch === 0) {
      this.#followed = true
      this.#begin(listed, version)
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
    if (isReworded || this.#mayBeAnother(listed)) {
      this.#begin(listed, version)
      return
    }
    const changes = differenceOf(this.#objects, listed, this.#version)
    const [first] = changes
    const last = changes.at(-1)
    const isPast = first !== undefined && isAtLeast(this.#version, first.resourceVersion)
    // There is no room for so many between the two versions.
    if (isPast || (last !== undefined && !isAtLeast(version, last.resourceVersion))) {
      this.#drop('went-back', 'a list has changes that are older than what was known')
      return
    }
    try {
      for (const change of changes) {
        const { type, resourceVersion, object } = change
        this.#apply(type, type === 'DELETED' ? this.#records.putAt(object, resourceVersion) : object)
      }
    } catch (error) {
      if (!(error instanceof OutgrownError)) throw error
      this.#drop('no-room', error.message)
      return
    }
    const afterGap = this.#version !== version
    this.#version = version
    this.#flush(afterGap)
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
      else this.#records.leaves(record)
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

  onResumed(): void {
    if (!this.#isDropped) this.#deps.resumed()
  }

  onState(followed: boolean, message: string, code = 0): void {
    if (this.#isDropped) return
    this.#message = message
    this.#refusal = code
    if (code === NOT_FOUND) this.#forget()
    if (followed === this.#followed) return
    this.#followed = followed
    this.#flushSoon()
  }

  /** `isReworded`: an object is in other words than before, at the same version: its definition, or the cluster's release, is another one. */
  #listed(all: readonly JsonObject[]): { readonly listed: Map<string, ObjectRecord>; readonly isReworded: boolean } {
    const read = new Set(this.#listing)
    const listed = new Map<string, ObjectRecord>()
    let isReworded = false
    for (const one of all) {
      const record = recordOf(one)
      const key = keyOf(record.facts)
      const before = this.#objects.get(key)
      const isNew = read.has(record)
      // The record of an unchanged object may have been moved since its page was read.
      listed.set(key, isNew ? record : (before ?? record))
      isReworded ||= isNew && before !== undefined && isSameState(before, record.facts)
    }
    return { listed, isReworded }
  }

  /** A custom resource may have been defined again, with another scope or schema: then none of its former objects is left. */
  #mayBeAnother(listed: ReadonlyMap<string, ObjectRecord>): boolean {
    if (this.#list?.form !== 'sorted') return false
    for (const [key, { facts }] of listed) if (this.#objects.get(key)?.facts.uid === facts.uid) return false
    return true
  }

  /** Watches end: what their clients know may be void. */
  #begin(listed: Map<string, ObjectRecord>, version: string): void {
    const kept = new Set(listed.values())
    for (const record of this.#objects.values()) if (!kept.has(record)) this.#records.leaves(record)
    this.#objects = listed
    this.#version = version
    this.#epoch = ++epochs
    this.#number = 0
    this.#changes = []
    this.#reset()
    this.#records.told()
  }

  /** There is no such resource any more: what comes in its place has nothing to do with it. */
  #forget(): void {
    if (this.#epoch === 0) return
    this.#epoch = 0
    for (const record of this.#objects.values()) this.#records.leaves(record)
    this.#objects = new Map()
    this.#changes = []
    this.#bookmark = undefined
    this.#deps.publish({ type: 'gone', collection: this.id })
    this.#records.told()
    this.#wake()
  }

  #apply(type: CollectionChange['type'], object: ObjectRecord): void {
    const key = keyOf(object.facts)
    const before = this.#objects.get(key)
    if (type === 'DELETED') {
      this.#objects.delete(key)
      // Watches get its deletion.
      this.#records.leaves(object)
    } else this.#objects.set(key, object)
    if (before !== undefined) this.#records.leaves(before)
    this.#changes.push({ type, object })
  }

  #flushSoon(): void {
    if (this.#flushing) return
    this.#flushing = true
    setImmediate(() => {
      this.#flushing = false
      this.#flush()
    })
  }

  #flush(afterGap = false): void {
    if (this.#isDropped || this.#epoch === 0) return
    const moved = this.#records.rewrite(this.#objects)
    const { segments, dropped } = this.#records.takeNews()
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
      warnings: this.#warnings,
      afterGap,
    })
    this.#newBookmark = false
    this.#records.told()
    this.#wake()
  }

  #reset(): void {
    const { list, form } = frameOf(this.#list)
    this.#frame = JSON.stringify({ list, form })
    this.#records.takeNews()
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
      segments: this.#records.segments,
      objects: [...this.#objects.values()],
      followed: this.#followed,
      warnings: this.#warnings,
    })
    this.#roomTold = 0
    this.#tellRoom()
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
      encoding: this.id.encoding,
      reason,
      message,
    })
    this.#objects = new Map()
    this.#listing = []
    this.#records.end()
    this.#deps.publish({ type: 'gone', collection: this.id })
    this.#wake()
    void this.#following.stop()
    this.#deps.dropped(reason, message)
  }
}

function frameOf(facts: TypeOfLists | undefined): Pick<CollectionReset, 'list' | 'form'> {
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

function recordOf(one: JsonObject): ObjectRecord {
  return (one as Kept).record
}

function keyOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return objectKey(namespace, name)
}

function isSameState({ facts }: ObjectRecord, { uid, resourceVersion }: ObjectRecord['facts']): boolean {
  return facts.resourceVersion === resourceVersion && facts.uid === uid
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

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, at) => value === b[at])
}
