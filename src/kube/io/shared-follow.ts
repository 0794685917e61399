// Shares one list and watch among all followers of the same objects in the process, like client-go's shared informers: each change is sent and parsed
// once, and each object is in memory once.

import { type JsonObject, nameOf, namespaceOf } from '../../kit/api/json/json-object.ts'
import type { Logger } from '../../kit/api/ports.ts'
import type { FollowChoice, FollowEvents, Following, ObjectClient } from '../api/object-client.ts'
import { type ResourceKind, resourceName } from '../api/resource-kind.ts'

/**
 * The client's `follow`, shared by followers of the same selection of one of `kinds`. Each receives what its own watch would deliver, except
 * `onPage`; a late one first receives the current objects. All objects of these kinds are kept as received: what a `transform` drops saves memory in
 * its follower only. `large` kinds are kept until all followers have received the list: later followers get their own watch.
 */
export function sharedFollow(
  client: Pick<ObjectClient, 'follow'>,
  kinds: readonly ResourceKind[],
  log: Logger,
  large: readonly ResourceKind[] = [],
): ObjectClient['follow'] {
  const watches = new Map<string, SharedWatch>()
  return (kind, namespace, events, choice = {}) => {
    const isLarge = large.includes(kind)
    if (!isLarge && !kinds.includes(kind)) return client.follow(kind, namespace, events, choice)
    // Those who join later have not read that list.
    const { transform, from: _, ...selection } = choice
    const { labelSelector = '', name = '' } = selection
    const key = JSON.stringify([resourceName(kind), namespace, labelSelector, name])
    let watch = watches.get(key)
    if (watch === undefined || watch.isClosed) {
      const open = (shared: FollowEvents): Following => client.follow(kind, namespace, shared, selection)
      const made = new SharedWatch(open, !isLarge, resourceName(kind), log)
      watches.set(key, made)
      watch = made
    }
    return watch.join(events, transform)
  }
}

interface Follower {
  readonly events: FollowEvents
  readonly transform: NonNullable<FollowChoice['transform']>
  /** It has received the last list, and now receives changes; before that, changes reach it as part of the list. */
  begun: boolean
  /** It threw on the last list or event, which does not count as delivered. */
  failed: boolean
}

class SharedWatch implements FollowEvents {
  readonly #resource: string
  readonly #log: Logger
  readonly #keeps: boolean
  /** No follower can join any more. */
  isClosed = false
  readonly #followers = new Set<Follower>()
  readonly #following: Following
  /** Keyed by namespace and name; undefined = not listed yet. */
  #objects: Map<string, JsonObject> | undefined
  #version = ''
  #state: { readonly current: boolean; readonly message: string } | undefined
  /** Followers that have not begun. */
  readonly #waiting = new Set<Follower>()
  #turnIsDue = false

  /** @param keeps whether objects are kept for late followers */
  constructor(open: (events: FollowEvents) => Following, keeps: boolean, resource: string, log: Logger) {
    this.#resource = resource
    this.#log = log
    this.#keeps = keeps
    this.#following = open(this)
  }

  join(events: FollowEvents, transform: Follower['transform'] = identity): Following {
    const follower = { events, transform, begun: false, failed: false }
    this.#followers.add(follower)
    this.#wait(follower)
    return {
      stop: async () => {
        if (!this.#followers.delete(follower) || this.#followers.size > 0) return
        this.#close()
        await this.#following.stop()
      },
    }
  }

  onReplace(objects: readonly JsonObject[]): void {
    this.#objects = new Map(objects.map((object) => [keyOf(object), object]))
    for (const follower of this.#followers) this.#wait(follower)
  }

  onChange(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: JsonObject): void {
    if (type === 'DELETED') this.#objects?.delete(keyOf(object))
    else this.#objects?.set(keyOf(object), object)
    for (const follower of this.#followers) {
      follower.failed = !this.#tell(follower, () => follower.events.onChange(type, follower.transform(object)))
    }
  }

  onState(current: boolean, message: string): void {
    this.#state = { current, message }
    for (const follower of this.#followers) this.#tell(follower, () => follower.events.onState(current, message))
  }

  onVersion(resourceVersion: string): void {
    this.#version = resourceVersion
    for (const follower of this.#followers) this.#tellVersion(follower)
  }

  #close(): void {
    this.isClosed = true
    this.#objects = undefined
  }

  #wait(follower: Follower): void {
    follower.begun = false
    this.#waiting.add(follower)
    this.#nextTurn()
  }

  /** Each gets its own turn of the event loop: thousands of objects take a while. */
  #nextTurn(): void {
    if (this.#turnIsDue || this.#waiting.size === 0) return
    this.#turnIsDue = true
    setImmediate(() => {
      this.#turnIsDue = false
      const [next] = this.#waiting
      if (next === undefined) return
      this.#waiting.delete(next)
      this.#begin(next)
      this.#nextTurn()
      if (this.#waiting.size === 0 && !this.#keeps && this.#objects !== undefined) this.#close()
    })
  }

  /** Starts a follower with the current objects. */
  #begin(follower: Follower): void {
    const { events, transform } = follower
    follower.begun = true
    const objects = this.#objects
    if (objects !== undefined) {
      follower.failed = !this.#tell(follower, () =>
        events.onReplace(Array.from(objects.values(), (object) => transform(object))),
      )
      if (this.#version !== '') this.#tellVersion(follower)
    }
    if (this.#state === undefined) return
    const { current, message } = this.#state
    this.#tell(follower, () => events.onState(current, message))
  }

  #tellVersion(follower: Follower): void {
    if (follower.failed) follower.failed = false
    else this.#tell(follower, () => follower.events.onVersion?.(this.#version))
  }

  /** One follower's error must not keep others from receiving. @returns false if it threw */
  #tell(follower: Follower, call: () => void): boolean {
    // Another follower's callback may have stopped it.
    if (!follower.begun || !this.#followers.has(follower)) return true
    try {
      call()
      return true
    } catch (error) {
      this.#log.error('a change of objects could not be handled', { resource: this.#resource, error })
      return false
    }
  }
}

function keyOf(object: JsonObject): string {
  return `${namespaceOf(object)}/${nameOf(object)}`
}

function identity(object: JsonObject): JsonObject {
  return object
}
