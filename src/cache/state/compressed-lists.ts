// Lists of a collection that are kept compressed, in runs of objects: a change of an object makes the run void that it is in, and all others stay. What
// a thread may keep is a part of the collection's memory, which the main thread gives it as long as there is nothing better to do with it.

import type { AnswerForm } from '../core/bytes/answer-form.ts'
import type { Deflated } from '../core/bytes/deflated.ts'
import type { CachedObject } from './cached-object.ts'

/** A list that no client has asked for this long is dropped when others need room. */
export const LIST_IDLE_MS = 300_000
/** How often the main thread is told that the memory is in use. */
const ASK_AGAIN_MS = 60_000
/** Memory is asked for in multiples of it. */
const STEP_BYTES = 256 * 1024
/** In a run, and where it is looked up. */
const REFERENCE_BYTES = 72
const RUN_BYTES = 300
/** Until it is known: the bytes of a list against those that they are compressed to. */
const FIRST_RATIO = 0.25
/** Runs are not all alike. */
const SPARE = 1.1
const FORMS: readonly AnswerForm['name'][] = ['json', 'protobuf', 'partial json', 'partial protobuf']

/** Objects that follow each other in a list, and what they are compressed to. */
export class CompressedRun {
  readonly objects: readonly CachedObject[]
  /** The first one is the first of the list: nothing stands in front of it. */
  readonly isFirst: boolean
  /** undefined = it is being made, or has failed. */
  part: Deflated | undefined
  hasFailed = false

  constructor(objects: readonly CachedObject[], isFirst: boolean) {
    this.objects = objects
    this.isFirst = isFirst
  }

  /** Whether the objects from this index on are its own. */
  isAt(objects: readonly CachedObject[], index: number): boolean {
    if (this.isFirst !== (index === 0)) return false
    return this.objects.every((object, at) => objects[index + at] === object)
  }

  /** With what is needed to find it. */
  get bytes(): number {
    return (this.part?.bytes.length ?? 0) + RUN_BYTES + REFERENCE_BYTES * this.objects.length
  }
}

/** A list in one form, of all objects or of a namespace. */
export class CompressedList {
  readonly #room: Room
  /** By each of its objects. */
  readonly #runs = new Map<CachedObject, CompressedRun>()
  usedMs = 0
  /** Memory of the runs that are kept. */
  bytes = 0
  /** That all of it would take. */
  needed = 0
  /** Bytes of all runs that were made, before and after. */
  #plain = 0
  #compressed = 0
  #isDropped = false

  constructor(room: Room) {
    this.#room = room
  }

  /** The run that begins at this index, kept or being made. */
  find(objects: readonly CachedObject[], index: number): CompressedRun | undefined {
    const object = objects[index]
    const run = object && this.#runs.get(object)
    return run?.isAt(objects, index) === true ? run : undefined
  }

  /** Whether a run begins with this object, which is not the first of the list. */
  begins(object: CachedObject): boolean {
    const run = this.#runs.get(object)
    return run !== undefined && !run.isFirst && run.objects[0] === object
  }

  /** Others that need the same find it, and wait. @param run its objects are those of the collection now */
  begin(run: CompressedRun): void {
    if (this.#isDropped) return
    for (const object of run.objects) {
      this.forget(object)
      this.#runs.set(object, run)
    }
  }

  /** It is made, or has failed. It is kept if its objects have not changed meanwhile and there is room. */
  made(run: CompressedRun): void {
    const { part } = run
    if (part !== undefined) {
      this.#plain += part.length
      this.#compressed += part.bytes.length
    }
    const [first] = run.objects
    if (first === undefined || this.#runs.get(first) !== run) return
    if (part === undefined || !this.#room.take(run.bytes)) {
      for (const object of run.objects) this.#runs.delete(object)
      return
    }
    this.bytes += run.bytes
  }

  /** The object is not what it was. */
  forget(object: CachedObject): void {
    const run = this.#runs.get(object)
    if (run === undefined) return
    for (const one of run.objects) this.#runs.delete(one)
    if (run.part === undefined) return
    this.bytes -= run.bytes
    this.#room.give(run.bytes)
  }

  /** What all of it would take. */
  estimate(plainBytes: number, objects: number): number {
    const ratio = this.#plain === 0 ? FIRST_RATIO : this.#compressed / this.#plain
    return plainBytes * ratio * SPARE + objects * REFERENCE_BYTES
  }

  /** Answers that are being sent have it, and keep nothing in it any more. */
  drop(): void {
    this.#isDropped = true
    this.#runs.clear()
    this.#room.give(this.bytes)
    this.bytes = 0
  }
}

/** The memory of all lists. */
interface Room {
  take(bytes: number): boolean
  give(bytes: number): void
}

export class CompressedLists implements Room {
  /** The one that was used longest ago first. */
  readonly #lists = new Map<string, CompressedList>()
  #nowMs = 0
  #allowed = 0
  #bytes = 0
  /** What all lists would take that are in use. */
  #needed = 0
  #asked = 0
  #askAgainMs = 0

  /** Memory of all runs that are kept. */
  get bytes(): number {
    return this.#bytes
  }

  /** A client gets this list. @param namespace '' = all @param objects how many it has */
  use(form: AnswerForm['name'], namespace: string, plainBytes: number, objects: number, nowMs: number): CompressedList {
    this.#nowMs = nowMs
    const key = keyOf(form, namespace)
    const list = this.#lists.get(key) ?? new CompressedList(this)
    this.#lists.delete(key)
    this.#lists.set(key, list)
    list.usedMs = nowMs
    this.#needed -= list.needed
    list.needed = list.estimate(plainBytes, objects)
    this.#needed += list.needed
    return list
  }

  /** Bytes that the main thread is to be asked for; undefined = it knows. */
  toAsk(): number | undefined {
    this.#dropIdle()
    const bytes = Math.ceil(this.#needed / STEP_BYTES) * STEP_BYTES
    if (bytes <= this.#asked && this.#nowMs < this.#askAgainMs) return undefined
    this.#asked = bytes
    this.#askAgainMs = this.#nowMs + ASK_AGAIN_MS
    return bytes
  }

  /** The main thread allows so much. */
  allow(bytes: number): void {
    this.#allowed = bytes
    for (const key of this.#lists.keys()) {
      if (this.#bytes <= bytes) return
      this.#drop(key)
    }
  }

  /** The object is not what it was. */
  forget(object: CachedObject): void {
    if (this.#lists.size === 0) return
    for (const namespace of new Set(['', object.facts.namespace]))
      for (const form of FORMS) this.#lists.get(keyOf(form, namespace))?.forget(object)
  }

  /** Nothing is kept any more. */
  end(): void {
    this.#allowed = 0
    for (const key of this.#lists.keys()) this.#drop(key)
  }

  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#allowed) this.#dropIdle()
    if (this.#bytes + bytes > this.#allowed) return false
    this.#bytes += bytes
    return true
  }

  give(bytes: number): void {
    this.#bytes -= bytes
  }

  #dropIdle(): void {
    for (const [key, { usedMs }] of this.#lists) {
      if (this.#nowMs - usedMs < LIST_IDLE_MS) return
      this.#drop(key)
    }
  }

  #drop(key: string): void {
    const list = this.#lists.get(key)
    this.#lists.delete(key)
    this.#needed -= list?.needed ?? 0
    list?.drop()
  }
}

function keyOf(form: AnswerForm['name'], namespace: string): string {
  return `${namespace}/${form}`
}
