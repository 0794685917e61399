// Parts of a list that all clients may share who get the same objects in the same form: compressed by the first who needs them, kept while the objects
// are what they were. The others wait for a part that is being made, and hold nothing of it.

import type { ListItems } from '../core/bytes/answer-form.ts'
import type { Deflated } from '../core/bytes/deflated.ts'
import { MalformedError } from '../core/bytes/malformed.ts'
import { DEFLATED_BYTES, type DeflatedSource, deflate, type Outgoing, stored } from '../io/gzip-source.ts'
import type { CachedCollection } from '../state/cached-collection.ts'
import type { CachedCollections } from '../state/cached-collections.ts'
import type { CachedObject } from '../state/cached-object.ts'
import { type CompressedList, CompressedRun } from '../state/compressed-lists.ts'
import { FanOut } from './fan-out.ts'
import type { KeptForm } from './kept-form.ts'

/** In each thread. zlib's own threads are no more, and other answers wait; nothing else holds the memory. */
export const MOST_MADE = 4
/** A list with a larger object is compressed for each client, in parts of it. */
export const LARGEST_SHARED_BYTES: number = 256 * 1024
/** A run ends where a known one begins, unless it would be shorter: otherwise they would become ever more. */
const LEAST_BYTES = DEFLATED_BYTES / 4

/** Who waits for each run that is being made. */
const making = new Map<CompressedRun, Set<SharedParts>>()
/** What is made is sent to each in turn, as changes are to watches. */
const turns = new FanOut()

/** A list that may be shared. */
export interface SharedList {
  readonly collection: Pick<CachedCollection, 'has'>
  readonly kept: CompressedList
  readonly objects: readonly CachedObject[]
  readonly items: ListItems
}

/**
 * A list of all objects of a namespace, which a client gets compressed; undefined = it is compressed for this client alone.
 * @param namespace '' = all
 */
export function sharedList(
  collections: Pick<CachedCollections, 'askRoom'>,
  { collection, form }: KeptForm,
  namespace: string,
  { objects, items, length }: Pick<SharedList, 'objects' | 'items'> & { readonly length: number },
  nowMs: number,
): SharedList | undefined {
  if (collection.isGone) return undefined
  for (let at = 0; at < objects.length; at++) if (items.bytes(at) > LARGEST_SHARED_BYTES) return undefined
  const kept = collection.compressed.use(form.name, namespace, length, objects.length, nowMs)
  collections.askRoom(collection)
  return { collection, kept, objects, items }
}

const OPENING = 0
const ITEMS = 1
const END = 2

export class SharedParts implements DeflatedSource {
  readonly #list: SharedList
  #answer: Outgoing | undefined
  #next = OPENING
  #at = 0
  /** What it waits for: its own, or to make one. */
  #waitsFor: CompressedRun | undefined
  /** The run that begins at the next object, until it has been sent. */
  #run: CompressedRun | undefined

  constructor(list: SharedList) {
    this.#list = list
  }

  attach(answer: Outgoing): void {
    this.#answer = answer
  }

  next(): Deflated | undefined | 'end' {
    const { objects, items } = this.#list
    switch (this.#next) {
      case OPENING:
        this.#next = ITEMS
        return stored(items.opening)
      case ITEMS:
        if (this.#at < objects.length) return this.#nextRun()
        this.#next = END
        return items.closing.length > 0 ? stored(items.closing) : 'end'
      default:
        return 'end'
    }
  }

  /** What it has waited for is made. A client that takes nothing now keeps nothing of it. */
  proceed(): void {
    this.#answer?.proceed()
    if (this.#run?.part !== undefined) this.#run = undefined
  }

  over(): void {
    turns.delete(this)
    if (this.#waitsFor !== undefined) making.get(this.#waitsFor)?.delete(this)
    this.#answer = undefined
    this.#run = undefined
  }

  #nextRun(): Deflated | undefined {
    const { kept, objects } = this.#list
    this.#run ??= kept.find(objects, this.#at) ?? this.#make()
    const run = this.#run
    if (run === undefined) {
      // The oldest one is the first that makes room.
      const [oldest] = making.keys()
      this.#waitFor(oldest)
      return undefined
    }
    if (run.hasFailed) {
      this.#answer?.drop()
      return undefined
    }
    if (run.part === undefined) {
      this.#waitFor(run)
      return undefined
    }
    // A client that takes long to read holds nothing of it: what is on its way is charged to it.
    this.#run = undefined
    this.#at += run.objects.length
    return run.part
  }

  #waitFor(run: CompressedRun | undefined): void {
    this.#waitsFor = run
    if (run !== undefined) making.get(run)?.add(this)
  }

  /** undefined = too many are being made. */
  #make(): CompressedRun | undefined {
    if (making.size >= MOST_MADE) return undefined
    const { collection, kept, objects, items } = this.#list
    const from = this.#at
    const to = this.#endOfRun()
    const run = new CompressedRun(objects.slice(from, to), from === 0)
    const plain = joined(items, from, to)
    if (plain === undefined) {
      run.hasFailed = true
      return run
    }
    if (run.objects.every((object) => collection.has(object))) kept.begin(run)
    making.set(run, new Set())
    deflate(plain, (part) => {
      run.hasFailed = part === undefined
      // Without what zlib had room for beyond it.
      run.part = part && { ...part, bytes: exactly(part.bytes) }
      kept.made(run)
      const waiting = making.get(run)
      making.delete(run)
      for (const parts of waiting ?? []) turns.add(parts)
    })
    return run
  }

  /** Index behind its last object. */
  #endOfRun(): number {
    const { kept, objects, items } = this.#list
    let bytes = 0
    for (let at = this.#at; ; ) {
      bytes += items.bytes(at++)
      const next = objects[at]
      if (next === undefined || bytes >= DEFLATED_BYTES) return at
      if (bytes >= LEAST_BYTES && kept.begins(next)) return at
    }
  }
}

/** undefined = what upstream sent cannot be written in this form. */
function joined(items: ListItems, from: number, to: number): Buffer | undefined {
  try {
    let bytes = 0
    for (const parts = items.some(from, to); parts.next(); ) bytes += parts.end - parts.start
    const all = Buffer.allocUnsafe(bytes)
    let at = 0
    for (const parts = items.some(from, to); parts.next(); ) at += parts.memory.copy(all, at, parts.start, parts.end)
    return all
  } catch (error) {
    if (error instanceof MalformedError) return undefined
    throw error
  }
}

function exactly(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}
