// Memory of followed objects: pods, nodes and workloads of all clusters together, divided among the clusters, so that none can exhaust the process's
// memory with an endless number of objects.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Charge } from '../../kit/api/stream.ts'
import { SharedResource } from '../../kit/core/shares/shared-resource.ts'
import { keptBytes } from '../core/answers/kept-bytes.ts'
import { AnswerBytes } from './answers/thread-answers.ts'

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
