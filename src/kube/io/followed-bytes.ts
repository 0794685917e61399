// The memory of what is kept of objects that are followed: pods, nodes, workloads of all clusters together, divided among these, so that no cluster
// takes the memory of the process by objects without end.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Charge } from '../../kit/api/stream.ts'
import { SharedResource } from '../../kit/core/shares/shared-resource.ts'
import { keptBytes } from '../core/answers/kept-bytes.ts'
import { AnswerBytes } from './answers/thread-answers.ts'

/** Until a setting says otherwise: of commands, which follow little. */
const DEFAULT_BYTES = 256 * 1024 * 1024

let shared = new SharedResource('followed-bytes', DEFAULT_BYTES)

/** As it is now. */
export function followedBytes(): SharedResource {
  return shared
}

/** For what is followed from now on. @param bytes 0 = any number */
export function limitFollowedBytes(bytes: number): void {
  shared = new SharedResource('followed-bytes', bytes)
}

/** What is followed takes more memory than there is for it. */
export class OutgrownError extends Error {}

/** What one follower may keep. It is counted exactly by a list, and from then on what a watch brings is added to it: what the follower has replaced is not known here. */
export class FollowedBytes {
  readonly #memory: AnswerBytes
  #held = 0
  /** Of the list before. */
  #kept = 0
  #listed = 0

  constructor(charge: Charge) {
    this.#memory = new AnswerBytes(charge, shared)
  }

  /** A list begins; what is kept stays until all of it is there. */
  begin(): void {
    this.#listed = 0
    this.#kept = this.#held
  }

  /** A part of the list. While it comes, what was there before is in memory, too: the larger one of both is counted. @throws {OutgrownError} */
  list(objects: readonly JsonObject[]): void {
    for (const object of objects) this.#listed += keptBytes(object)
    if (this.#listed > this.#held) this.#take(this.#listed - this.#held)
  }

  /** The list is whole, and replaces what was kept; or it is not, and nothing has changed. */
  end(whole: boolean): void {
    this.#give(this.#held - (whole ? this.#listed : this.#kept))
  }

  /** A new object, or a new version of one. @throws {OutgrownError} only another list tells how much there is */
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
