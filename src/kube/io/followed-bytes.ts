// Memory of followed objects: pods, nodes and workloads of all clusters together, divided among the clusters, so that none can exhaust the process's
// memory with an endless number of objects.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Charge } from '../../kit/api/stream.ts'
import { SharedResource } from '../../kit/core/shares/shared-resource.ts'
import { AnswerBytes } from './answers/thread-answers.ts'

/** V8 on 64 bits: a header, and for a list or a map its backing store. */
const STRING = 16
const NUMBER = 16
const LIST = 32
const MAP = 24
/** One reference. */
const ITEM = 8
/** One reference, plus a part of the name and of V8's table for maps with unique names. */
const FIELD = 24

/** Default for commands, which follow little; the gateway has a setting. */
const DEFAULT_BYTES = 256 * 1024 * 1024

let shared = new SharedResource('followed-bytes', DEFAULT_BYTES)

/** The current resource. */
export function followedBytes(): SharedResource {
  return shared
}

/** Applies to what is followed from now on. @param bytes 0 = unlimited */
export function limitFollowedBytes(bytes: number): void {
  shared = new SharedResource('followed-bytes', bytes)
}

/** Followed objects take more memory than is available for them. */
export class OutgrownError extends Error {}

/** The memory of one follower. A list counts it exactly; later watch events are added to it: which of them replace known objects is unknown here. */
export class FollowedBytes {
  readonly #memory: AnswerBytes
  #held = 0
  /** Size of the previous list. */
  #kept = 0
  #listed = 0

  constructor(charge: Charge) {
    this.#memory = new AnswerBytes(charge, shared)
  }

  /** A list begins; the previous objects stay until it is complete. */
  begin(): void {
    this.#listed = 0
    this.#kept = this.#held
  }

  /** A part of the list. Meanwhile the previous objects are in memory, too: the larger of both is counted. @throws {OutgrownError} */
  list(objects: readonly JsonObject[]): void {
    for (const object of objects) this.#listed += keptBytes(object)
    if (this.#listed > this.#held) this.#take(this.#listed - this.#held)
  }

  /** The list is complete, and replaces the previous objects; or it is not, and nothing has changed. */
  end(whole: boolean): void {
    this.#give(this.#held - (whole ? this.#listed : this.#kept))
  }

  /** A new object, or a new version of one. @throws {OutgrownError} only another list can tell the actual size */
  add(object: JsonObject): void {
    this.#take(keptBytes(object))
  }

  drop(): void {
    this.#give(this.#held)
  }

  #take(bytes: number): void {
    if (!this.#memory.take(bytes)) throw new OutgrownError(this.#memory.full().message)
    this.#held += bytes
  }

  #give(bytes: number): void {
    this.#memory.give(bytes)
    this.#held -= bytes
  }
}

/**
 * Estimates the memory of an object that was parsed from JSON and is kept, in bytes: within a factor of three of V8's use (1.6 times for a pod of
 * the aggregator, half for maps whose names all differ). Linear in the number of values, and needs no stack for depth.
 */
export function keptBytes(value: unknown): number {
  let bytes = 0
  const waiting: unknown[] = [value]
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (typeof next === 'string') bytes += STRING + next.length
    else if (typeof next === 'number') bytes += NUMBER
    else if (Array.isArray(next)) {
      bytes += LIST + ITEM * next.length
      for (const item of next) waiting.push(item)
    } else if (typeof next === 'object' && next !== null) {
      bytes += MAP
      for (const key in next) {
        bytes += FIELD + Math.max(0, key.length - FIELD)
        waiting.push((next as Record<string, unknown>)[key])
      }
    }
  }
  return bytes
}
