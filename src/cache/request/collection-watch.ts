// What a watch of one collection is answered from.

import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import type { AnswerForm } from '../core/bytes/answer-form.ts'
import type { CachedCollection } from '../state/cached-collection.ts'
import type { CachedChange } from '../state/history.ts'
import type { Selects } from './selection.ts'
import type { WatchSource } from './watch-answer.ts'

export class CollectionWatch implements WatchSource<CachedChange> {
  readonly watched: CachedCollection
  readonly #form: AnswerForm
  readonly #selects: Selects
  readonly #version: string
  #caughtUp = false
  /** Version of the last bookmark. */
  #marked: string

  /** @param version of the state with which it begins, or behind which it goes on: bookmarks are never older */
  constructor(watched: CachedCollection, form: AnswerForm, selects: Selects, version: string) {
    this.watched = watched
    this.#form = form
    this.#selects = selects
    this.#version = version
    this.#marked = version
  }

  get isInGap(): boolean {
    return this.watched.history.isInGap(this.#version)
  }

  eventOf(change: CachedChange): Buffer | undefined {
    if (this.#isAhead(change.resourceVersion)) return undefined
    return this.watched.history.eventOf(change, this.#selects, this.#form)
  }

  endOfState(): Buffer {
    return this.#bookmark(this.#version, true)
  }

  bookmark(): Buffer | undefined {
    const { version } = this.watched
    if (version === this.#marked || !this.watched.isAtLeast(this.#version)) return undefined
    return this.#bookmark(version, false)
  }

  /** A client may know versions that have not arrived here: it gets what is newer. */
  #isAhead(version: string): boolean {
    if (this.#caughtUp) return false
    this.#caughtUp = (compareResourceVersions(version, this.#version) ?? 0) > 0
    return !this.#caughtUp
  }

  #bookmark(version: string, endsState: boolean): Buffer {
    this.#marked = version
    return Buffer.concat(this.#form.event('BOOKMARK', this.watched.bookmarks.object(version, endsState)))
  }
}
