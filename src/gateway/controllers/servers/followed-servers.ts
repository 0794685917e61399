// Follows the addresses of servers with `resolve`: looks their names up when the TTL expires, and recompiles their cluster when
// they change. Failed look-ups change nothing. Each replica does this by itself: DNS may answer differently elsewhere.
// Clusters that follow their EndpointSlice have one more entry (followed-slices.ts).

import type { Clock, Logger } from '../../../kit/api/ports.ts'
import type { ClosableClient } from '../../../kube/api/object-client.ts'
import { type ReconcileOutcome, WorkQueue } from '../../../kube/controllers/kernel/work-queue.ts'
import { NO_ADDRESSES, type ServerAddresses, SLICE } from '../../core/cluster/compile-settings.ts'
import type { CompiledCluster, CompiledEndpoint, FollowedServer } from '../../core/cluster/compiled-cluster.ts'
import {
  addressesIn,
  type LookedUp,
  nextLookUpMs,
  type Resolution,
  resolution,
} from '../../core/endpoints/resolution.ts'
import type { ServerFact } from '../../core/status/status-facts.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import { type FollowedServerState, FollowedSlices, type LookUpCounts } from './followed-slices.ts'
import { SettlingAddresses } from './settling-addresses.ts'

interface FollowedServersDeps {
  /** Never rejects. */
  lookUp(name: string): Promise<LookedUp>
  /** A new client of the cluster itself, with the gateway's own credential. */
  client(cluster: string): ClosableClient
  readonly clusters: { get(name: string): LiveCluster | undefined }
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Logger
  /** The addresses of a server of this cluster have changed. */
  onChange(cluster: string): void
}

/** Concurrent look-ups: each has its own sockets, and with thousands of clusters all start at once. */
const MAX_LOOK_UPS = 64

export class FollowedServers {
  readonly #deps: FollowedServersDeps
  /** By cluster, then server. */
  readonly #entries = new Map<string, Map<string, Entry>>()
  /** By a key that is never reused: a server that is removed and returns doesn't wait for the look-up of the earlier entry. */
  readonly #byKey = new Map<string, Entry>()
  readonly #lookUps: WorkQueue
  #made = 0
  /** By cluster. */
  readonly #slices = new Map<string, FollowedSlices>()

  constructor(deps: FollowedServersDeps) {
    this.#deps = deps
    const { clock, log } = deps
    this.#lookUps = new WorkQueue({
      reconcile: (key) => this.#lookUp(key),
      onError: (_, error) => log.error('the addresses of a server could not be put in force', { error }),
      clock,
      random: Math.random,
      limit: MAX_LOOK_UPS,
    })
  }

  /** Known addresses of the servers of a cluster. */
  addresses(cluster: string): ServerAddresses {
    const entries = this.#entries.get(cluster)
    const slices = this.#slices.get(cluster)?.inForce ?? []
    if (entries === undefined && slices.length === 0) return NO_ADDRESSES
    const known = new Map<string, readonly string[]>()
    for (const [server, { inForce }] of entries ?? []) if (inForce.length > 0) known.set(server, inForce)
    if (slices.length > 0) known.set(SLICE, slices)
    return known
  }

  /** Applies a change of the cluster table: new servers are looked up at once. */
  change(changed: readonly CompiledCluster[], removed: readonly string[]): void {
    for (const name of removed) {
      this.#keepOnly(name, new Map())
      this.#endSlices(name)
    }
    for (const { name, endpoints, followsSlice } of changed) {
      this.#followSlices(name, followsSlice)
      const before = this.#entries.get(name)
      const after = new Map<string, Entry>()
      for (const of of endpoints.flatMap(serversOf)) {
        if (of.slice === true || after.has(of.url)) continue
        after.set(of.url, before?.get(of.url) ?? this.#begin(name, of))
      }
      this.#keepOnly(name, after)
    }
  }

  #followSlices(cluster: string, wanted: boolean): void {
    if (!wanted) this.#endSlices(cluster)
    if (!wanted || this.#slices.has(cluster)) return
    const { client, clusters, clock, log, onChange } = this.#deps
    const deps = { cluster, client: client(cluster), clusters, clock, log, onChange: () => onChange(cluster) }
    this.#slices.set(cluster, new FollowedSlices(deps))
  }

  #endSlices(cluster: string): void {
    const slices = this.#slices.get(cluster)
    this.#slices.delete(cluster)
    // A watch that ends late delivers nothing more.
    void slices?.stop()
  }

  #keepOnly(cluster: string, after: Map<string, Entry>): void {
    const before = this.#entries.get(cluster)
    if (after.size === 0) this.#entries.delete(cluster)
    else this.#entries.set(cluster, after)
    for (const [server, entry] of before ?? []) if (!after.has(server)) this.#end(entry)
  }

  #begin(cluster: string, server: FollowedServer): Entry {
    const entry = new Entry(String(++this.#made), cluster, server, this.#deps)
    this.#byKey.set(entry.key, entry)
    this.#lookUps.add(entry.key)
    return entry
  }

  #end(entry: Entry): void {
    this.#byKey.delete(entry.key)
    this.#lookUps.forget(entry.key)
    entry.stop()
  }

  async #lookUp(key: string): Promise<ReconcileOutcome> {
    const nextMs = await this.#byKey.get(key)?.lookUp()
    if (nextMs !== undefined) this.#lookUps.add(key, nextMs)
    return 'done'
  }

  /** In the order of their endpoints; undefined = the cluster has no followed server. */
  ofCluster(cluster: string): readonly ServerFact[] | undefined {
    const states = this.#statesOf(cluster)
    return states.length === 0 ? undefined : states
  }

  #statesOf(cluster: string): readonly FollowedServerState[] {
    const servers = [...(this.#entries.get(cluster)?.values() ?? [])].map((entry) => entry.state)
    const slices = this.#slices.get(cluster)
    return slices === undefined ? servers : [...servers, slices.state]
  }

  all(): readonly FollowedServerState[] {
    return [...new Set([...this.#entries.keys(), ...this.#slices.keys()])].flatMap((name) => this.#statesOf(name))
  }

  stop(): void {
    void this.#lookUps.stop()
    for (const name of [...this.#entries.keys()]) this.#keepOnly(name, new Map())
    for (const name of [...this.#slices.keys()]) this.#endSlices(name)
  }
}

/** The followed servers that the endpoint is an address of. */
function serversOf({ of, also = [] }: CompiledEndpoint): readonly FollowedServer[] {
  return of === undefined ? also : [of, ...also]
}

class Entry {
  readonly key: string
  readonly #cluster: string
  readonly #server: FollowedServer
  readonly #deps: FollowedServersDeps
  readonly #counts: LookUpCounts = { found: 0, empty: 0, error: 0 }
  readonly #addresses: SettlingAddresses
  #known: Resolution | undefined
  #failures = 0
  #message = ''
  #stopped = false

  constructor(key: string, cluster: string, server: FollowedServer, deps: FollowedServersDeps) {
    this.key = key
    this.#cluster = cluster
    this.#server = server
    this.#deps = deps
    this.#addresses = new SettlingAddresses({
      before: server.name,
      isHealthy: (address) => this.#isHealthy(address),
      clock: deps.clock,
      onChange: (addresses) => {
        deps.log.info('the addresses of a server have changed', { cluster, server: server.url, addresses })
        deps.onChange(cluster)
      },
    })
  }

  /** Addresses in force, and the name itself while it still serves as written. Empty = unknown. */
  get inForce(): readonly string[] {
    return this.#addresses.inForce
  }

  get state(): FollowedServerState {
    const addresses = this.#known === undefined ? [] : addressesIn(this.#known)
    const { v4 = [], v6 = [] } = this.#known ?? {}
    return {
      cluster: this.#cluster,
      server: this.#server.url,
      addresses,
      omitted: v4.length + v6.length - addresses.length,
      message: this.#message,
      counts: this.#counts,
    }
  }

  stop(): void {
    this.#stopped = true
    this.#addresses.stop()
  }

  /** @returns milliseconds until the next look-up; undefined = none */
  async lookUp(): Promise<number | undefined> {
    const found = await this.#deps.lookUp(this.#server.name)
    if (this.#stopped) return undefined
    this.#count(found)
    this.#known = resolution(this.#known, found)
    if (this.#known !== undefined) this.#addresses.want(addressesIn(this.#known))
    return nextLookUpMs(found, this.#failures)
  }

  #count({ v4, v6, message }: LookedUp): void {
    const { log } = this.#deps
    const empty = message === '' && (v4?.length ?? 0) + (v6?.length ?? 0) === 0
    if (message !== '') this.#counts.error++
    else if (empty) this.#counts.empty++
    else this.#counts.found++
    this.#message = empty ? 'the name has no address' : message
    const fields = { cluster: this.#cluster, server: this.#server.url }
    if (this.#message !== '' && this.#failures === 0) {
      log.warn('a server cannot be looked up; the addresses known stay in use', { ...fields, reason: this.#message })
    }
    if (this.#message === '' && this.#failures > 0) log.info('a server can be looked up again', fields)
    this.#failures = this.#message === '' ? 0 : this.#failures + 1
  }

  #isHealthy(address: string): boolean {
    const all = this.#deps.clusters.get(this.#cluster)?.endpoints.all ?? []
    return all.some(({ compiled, health, enabled }) => {
      const isOurs = serversOf(compiled).some(({ url }) => url === this.#server.url) && compiled.host === address
      return isOurs && (health.state === 'healthy' || !enabled)
    })
  }
}
