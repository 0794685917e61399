// An ObjectClient that keeps the lists of some kinds on disk: a follower that starts without the server receives the kept list, and changes once the
// server responds. Nothing else is served from disk.

import { type JsonObject, nameOf, namespaceOf } from '../../../kit/api/json/json-object.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { FollowEvents, Following, ObjectClient } from '../../../kube/api/object-client.ts'
import { type ResourceKind, resourceName } from '../../../kube/api/resource-kind.ts'
import type { LastGoodKeeper } from './keeper.ts'

interface KeptFollowOptions {
  readonly client: ObjectClient
  readonly keeper: LastGoodKeeper
  /** Followed in all namespaces, and unfiltered. */
  readonly kinds: readonly ResourceKind[]
  /** Milliseconds that a follower still waits for the server. */
  readonly waitMs: () => number
}

export function keepFollowed({ client, keeper, kinds, waitMs }: KeptFollowOptions): ObjectClient {
  const kept = new KeptLists(keeper, kinds)
  const { currentVersion } = client
  return {
    get: (kind, at) => client.get(kind, at),
    list: (kind, namespace, labelSelector) => client.list(kind, namespace, labelSelector),
    create: (kind, object) => client.create(kind, object),
    update: (kind, object, subresource) => client.update(kind, object, subresource),
    patch: (kind, at, type, body, options) => client.patch(kind, at, type, body, options),
    delete: (kind, at) => client.delete(kind, at),
    ...(currentVersion !== undefined && { currentVersion: (kind: ResourceKind) => currentVersion.call(client, kind) }),
    follow: (kind, namespace, events, choice = {}) => {
      const isWhole = namespace === '' && Object.keys(choice).length === 0
      if (!isWhole || !kinds.includes(kind)) return client.follow(kind, namespace, events, choice)
      return follow(client, kind, events, kept, waitMs())
    },
  }
}

class KeptLists {
  readonly #keeper: LastGoodKeeper
  /** Kinds whose list is not known to be current. */
  readonly #behind: Set<ResourceKind>
  #restored: ReadonlyMap<string, readonly JsonObject[]> | undefined

  constructor(keeper: LastGoodKeeper, kinds: readonly ResourceKind[]) {
    this.#keeper = keeper
    this.#behind = new Set(kinds)
  }

  /** undefined = nothing was kept. */
  restore(kind: ResourceKind): readonly JsonObject[] | undefined {
    if (this.#restored === undefined) {
      const state = this.#keeper.restore()
      if (state === undefined) return undefined
      const lists = new Map<string, JsonObject[]>()
      for (const record of state.records) {
        if (!isRecord(record) || !isRecord(record['object'])) continue
        const list = lists.get(String(record['kind'])) ?? []
        list.push(record['object'])
        lists.set(String(record['kind']), list)
      }
      this.#restored = lists
      this.#keeper.serves(state.timeMs)
    }
    return this.#restored.get(resourceName(kind)) ?? []
  }

  replace(kind: ResourceKind, objects: readonly JsonObject[]): void {
    const kept = new Set(objects.map((object) => this.put(kind, object)))
    for (const name of this.#keeper.names()) {
      if (name.startsWith(`${resourceName(kind)} `) && !kept.has(name)) this.#keeper.delete(name)
    }
  }

  put(kind: ResourceKind, object: JsonObject): string {
    const name = keyOf(kind, object)
    this.#keeper.put(name, { kind: resourceName(kind), object })
    return name
  }

  remove(kind: ResourceKind, object: JsonObject): void {
    this.#keeper.delete(keyOf(kind, object))
  }

  /** The state is current if all kinds are. */
  current(kind: ResourceKind, current: boolean): void {
    if (current) this.#behind.delete(kind)
    else this.#behind.add(kind)
    this.#keeper.current(this.#behind.size === 0)
  }
}

function follow(
  client: ObjectClient,
  kind: ResourceKind,
  events: FollowEvents,
  kept: KeptLists,
  waitMs: number,
): Following {
  const late = setTimeout(() => {
    const objects = kept.restore(kind)
    if (objects !== undefined) events.onReplace(objects)
  }, waitMs)
  late.unref()
  const following = client.follow(kind, '', {
    ...events,
    onReplace: (objects) => {
      clearTimeout(late)
      kept.replace(kind, objects)
      kept.current(kind, true)
      events.onReplace(objects)
    },
    onChange: (type, object) => {
      if (type === 'DELETED') kept.remove(kind, object)
      else kept.put(kind, object)
      events.onChange(type, object)
    },
    onState: (current, message) => {
      kept.current(kind, current)
      events.onState(current, message)
    },
  })
  return {
    stop: async () => {
      clearTimeout(late)
      await following.stop()
    },
  }
}

function keyOf(kind: ResourceKind, object: JsonObject): string {
  return `${resourceName(kind)} ${namespaceOf(object)}/${nameOf(object)}`
}
