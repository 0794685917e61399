// An ObjectClient that keeps the lists of some kinds on disk: a follower that starts without the server receives the kept list, and changes once the
// server responds. Nothing else is served from disk.

import { type JsonObject, nameOf, namespaceOf } from '../../../kit/api/json/json-object.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import type { FollowEvents, Following, ObjectClient } from '../../../kube/api/object-client.ts'
import { type ResourceKind, resourceName } from '../../../kube/api/resource-kind.ts'
import type { ResolvedCluster } from '../../api/resource-source.ts'
import type { UpstreamCluster } from '../../api/upstream-cluster/upstream-cluster.ts'
import type { LastGoodClusters } from '../sources/objects/objects-source.ts'
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

// UpstreamClusters in force as records of a last good state, with the bytes of their Secrets: the good versions, which may not be the newest objects.

const KIND = 'UpstreamCluster'

interface KeptClustersOptions {
  readonly keeper: LastGoodKeeper
  /** Milliseconds that a start still waits for the API server. */
  readonly waitMs: () => number
  readonly log: Logger
  /** Reports whether the API server responds. */
  onCurrent(current: boolean): void
}

export function keptClusters({ keeper, waitMs, log, onCurrent }: KeptClustersOptions): LastGoodClusters {
  let restored: ReadonlyMap<string, ResolvedCluster> | undefined
  return {
    get waitMs() {
      return waitMs()
    },
    restore: () => {
      const state = keeper.restore()
      if (state === undefined) return undefined
      restored = new Map(state.records.flatMap(readCluster).map((one) => [one.object.metadata.name, one]))
      keeper.serves(state.timeMs)
      return restored
    },
    keep: (clusters, changed) => {
      if (restored !== undefined && isOfAnother(restored, clusters)) {
        log.warn('the API server has none of the UpstreamClusters of the last good state, which are served no more', {
          fix: 'check that the kubeconfig names the right cluster; its objects are in force now',
        })
      }
      restored = undefined
      for (const name of changed ?? new Set([...keeper.names(), ...clusters.keys()])) {
        const version = clusters.get(name)
        if (version === undefined) keeper.delete(name)
        else keeper.put(name, { kind: KIND, ...version })
      }
    },
    current: (current) => {
      keeper.current(current)
      onCurrent(current)
    },
  }
}

/** The seal proves that this program wrote it: only the shape is checked. */
function readCluster(record: unknown): readonly ResolvedCluster[] {
  if (!isRecord(record) || record['kind'] !== KIND || !isRecord(record['object'])) return []
  const { object, revision, secrets } = record
  const names = Array.isArray(secrets) ? { secrets: secrets.map(String) } : {}
  return [{ object: object as unknown as UpstreamCluster, revision: String(revision), ...names }]
}

/** Whether nothing is left of what was served: another API server, or one that has lost its objects. */
function isOfAnother(
  restored: ReadonlyMap<string, ResolvedCluster>,
  clusters: ReadonlyMap<string, ResolvedCluster>,
): boolean {
  for (const [name, { object }] of restored) {
    const now = clusters.get(name)?.object.metadata
    if (now !== undefined && (now.uid === undefined || now.uid === object.metadata.uid)) return false
  }
  return restored.size > 0
}
