// What has happened in a collection lately, for watches that begin in the past and for those that are a little behind.

import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import type { AnswerForm, ObjectBytes } from '../core/bytes/answer-form.ts'
import { objectAtVersion } from '../core/bytes/object-at-version.ts'
import type { CachedObject } from './cached-object.ts'
import { RecentChanges } from './recent-changes.ts'

/** How a change is told. LEFT: it has left the selection. */
export type Told = 'ADDED' | 'MODIFIED' | 'DELETED' | 'LEFT'

/** One change. What is sent of it exists once in each form, for all watches that get it. */
export class CachedChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: CachedObject
  /** What it was before; undefined = it was not. */
  readonly before: CachedObject | undefined
  readonly atMs: number
  #events: Partial<Record<`${AnswerForm['name']} ${Told}`, Buffer>> = {}
  #madeBytes = 0

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

  /** Bytes of the events that have been made. */
  get madeBytes(): number {
    return this.#madeBytes
  }

  /** Its events are made again when a watch needs them. */
  forgetEvents(): void {
    this.#events = {}
    this.#madeBytes = 0
  }

  /**
   * What a watch of those that `selects` names gets of it (apiserver/pkg/storage/cacher/cache_watcher.go convertToWatchEvent): what leaves its
   * selection is deleted, and shown as it was before.
   */
  eventFor(selects: (object: CachedObject) => boolean, form: AnswerForm): Buffer | undefined {
    const told = this.toldTo(selects)
    return told && this.#event(told, form)
  }

  /** undefined = it is none of those that `selects` names, and was not. */
  toldTo(selects: (object: CachedObject) => boolean): Told | undefined {
    const { type, object, before } = this
    const was = before !== undefined && selects(before)
    if (type === 'DELETED') return was ? 'DELETED' : undefined
    if (selects(object)) return was ? 'MODIFIED' : 'ADDED'
    return was ? 'LEFT' : undefined
  }

  #event(told: Told, form: AnswerForm): Buffer {
    const key = `${form.name} ${told}` as const
    const known = this.#events[key]
    if (known !== undefined) return known
    const made = Buffer.concat(told === 'LEFT' ? form.event('DELETED', this.#left()) : form.event(told, this.object))
    this.#events[key] = made
    this.#madeBytes += made.length
    return made
  }

  #left(): ObjectBytes {
    return objectAtVersion(this.before ?? this.object, this.resourceVersion)
  }
}

export class History extends RecentChanges<CachedChange> {
  /** All later changes are there. */
  #since: string
  /** Not all changes between these two versions are known; undefined = there are none such. Of two gaps what is between them counts, too. */
  #gap: { readonly from: string; readonly to: string } | undefined

  constructor(since: string) {
    super()
    this.#since = since
  }

  add(change: CachedChange): void {
    this.push(change)
    this.trim(change.atMs)
  }

  trim(nowMs: number): void {
    const last = this.forgetOld(nowMs).at(-1)
    if (last === undefined) return
    this.#since = last.resourceVersion
    if (this.#gap !== undefined && (compareResourceVersions(this.#since, this.#gap.to) ?? 0) >= 0) this.#gap = undefined
  }

  /** Between these versions more may have come and gone than the changes that are there tell of. */
  addGap(from: string, to: string): void {
    this.#gap = { from: this.#gap?.from ?? from, to }
  }

  /** Whether the state at this version may have had something of which the changes behind it do not tell. */
  isInGap(version: string): boolean {
    if (this.#gap === undefined) return false
    const { from, to } = this.#gap
    return (compareResourceVersions(version, from) ?? 0) > 0 && (compareResourceVersions(version, to) ?? 0) < 0
  }

  /** Index of the first change behind `version`; undefined = some are gone. */
  behind(version: string): number | undefined {
    const order = compareResourceVersions(version, this.#since)
    if (order === undefined || order < 0 || this.isInGap(version)) return undefined
    return this.behindKnown(({ resourceVersion }) => (compareResourceVersions(resourceVersion, version) ?? 1) <= 0)
  }

  /** What a watch gets of a change. */
  eventOf(change: CachedChange, selects: (object: CachedObject) => boolean, form: AnswerForm): Buffer | undefined {
    return this.made(change, () => change.eventFor(selects, form))
  }
}
