// UpstreamClusters as a watch tells them to a command that changes many: their statuses are known as soon as they are written, without a list of all
// again and again. What it knows may be old, as with any watch: the waits look at a list now and then, too.

import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import type { FollowEvents, Following, ObjectClient, ObjectList } from '../../kube/api/object-client.ts'
import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import { metadataOf } from './control-plane.ts'

export class FollowedClusters implements FollowEvents {
  readonly #objects = new Map<string, JsonObject>()
  /** What the API server has answered to our own writes, and to lists: the watch may not be there yet. */
  readonly #answered = new Map<string, JsonObject>()
  readonly #following: Following
  #isCurrent = false
  #onEvent: (names: Iterable<string>) => void = () => undefined

  /** @param listed all of them: the watch begins there */
  constructor(client: Pick<ObjectClient, 'follow'>, listed: ObjectList) {
    this.#fill(listed.items)
    this.#following = client.follow(UPSTREAM_CLUSTERS, '', this, { from: listed.resourceVersion })
  }

  /** Whether a watch tells of changes. false = it has not begun, has been away for long, or is refused: nothing here counts. */
  get isCurrent(): boolean {
    return this.#isCurrent
  }

  /** undefined = it is gone. Never older than what was written or listed. */
  get(name: string): JsonObject | undefined {
    const object = this.#objects.get(name)
    const answered = this.#answered.get(name)
    return object === undefined || answered === undefined || isLater(object, answered) ? object : answered
  }

  /** @param object the answer to a write, or of a list */
  answered(object: JsonObject): void {
    const name = nameOf(object)
    const before = this.#answered.get(name)
    if (before === undefined || isLater(object, before)) this.#answered.set(name, object)
  }

  /** A list does not have it. */
  gone(name: string): void {
    this.#objects.delete(name)
  }

  /** Resolves once each has been seen settled, or after `ms`. @param isSettled of an object; undefined = it is gone */
  until(
    names: readonly string[],
    isSettled: (object: JsonObject | undefined) => boolean,
    ms: number,
  ): Promise<boolean> {
    const waiting = new Set(names)
    return new Promise((resolve) => {
      const end = (settled: boolean): void => {
        clearTimeout(timer)
        this.#onEvent = () => undefined
        resolve(settled)
      }
      const timer = setTimeout(() => end(false), ms)
      this.#onEvent = (changed) => {
        if (!this.#isCurrent) return
        for (const name of changed) if (waiting.has(name) && isSettled(this.get(name))) waiting.delete(name)
        if (waiting.size === 0) end(true)
      }
      this.#onEvent(names)
    })
  }

  stop(): Promise<void> {
    return this.#following.stop()
  }

  onReplace(objects: readonly JsonObject[]): void {
    const before = [...this.#objects.keys()]
    this.#objects.clear()
    this.#fill(objects)
    this.#onEvent(new Set([...before, ...this.#objects.keys()]))
  }

  onChange(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: JsonObject): void {
    const name = nameOf(object)
    if (type === 'DELETED') this.#objects.delete(name)
    else this.#objects.set(name, object)
    this.#onEvent([name])
  }

  onState(current: boolean, _message: string, code = 0): void {
    this.#isCurrent = current
    // Without the right to watch there will be none, and every attempt would list all of them.
    if (code !== 0) void this.stop()
    if (current) this.#onEvent(this.#objects.keys())
  }

  #fill(objects: readonly JsonObject[]): void {
    for (const object of objects) this.#objects.set(nameOf(object), object)
  }
}

/** Or the same. What cannot be compared is not: the waits look at lists then. */
function isLater(object: JsonObject, other: JsonObject): boolean {
  const order = compareResourceVersions(versionOf(object), versionOf(other))
  return order !== undefined && order >= 0
}

function versionOf(object: JsonObject): string {
  return metadataOf(object).resourceVersion ?? ''
}
