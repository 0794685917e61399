// The connections of every cluster, kept in sync with the objects: a changed endpoint or credential gets new connections, while the old ones finish
// their requests.

import { createHttp2Counters, type Http2Counters } from '../../../http2/counters.ts'
import type { Charge } from '../../../kit/api/stream.ts'
import type { DialGuard } from '../../../kit/io/dial/dial-guard.ts'
import type { CompiledClient, CompiledCluster, CompiledEndpoint } from '../../core/cluster/compiled-cluster.ts'
import { Offenders } from '../../core/upstream/offenders.ts'
import { createUpstreamCounters, type UpstreamCounters } from '../../metrics/upstream-counters.ts'
import { IDLE_CLOSE_MS } from './http2-connection.ts'
import type { SharedByCluster } from './offences.ts'
import { createUpstreamEndpoint, type EndpointConnections, type UpstreamEndpoint } from './pool.ts'
import { Relists } from './relists.ts'

interface ClusterEndpoint {
  readonly compiled: CompiledEndpoint
  readonly client: CompiledClient
  /** Name that its certificate is verified against, if not its own host. */
  readonly name: string
  /** Its connections, made when they are first asked for: most of thousands of clusters may have no requests in this thread. */
  connections: UpstreamEndpoint | undefined
}

export interface PoolDescription extends EndpointConnections {
  readonly cluster: string
  /** As written in the object. */
  readonly endpoint: string
}

/** The counters of connections. */
interface UpstreamCounting {
  /** Shared by all HTTP/2 connections. */
  readonly http2Upstreams: Http2Counters
  /** Counters of the connections to one endpoint; the same object each time. */
  upstream(cluster: string, endpoint: string): UpstreamCounters
}

/** Events worth logging. */
export interface UpstreamNews {
  /** Pacing of a cluster's lists and watches has begun or ended. */
  relisting(cluster: string, active: boolean): void
  /** A source's requests broke connections: it gets its own for a while. */
  quarantined(cluster: string, charge: Charge, forMs: number): void
}

export class Upstreams {
  /** cluster name -> endpoint URL -> connections */
  readonly #clusters = new Map<string, Map<string, ClusterEndpoint>>()
  readonly #shared = new Map<string, SharedByCluster>()
  readonly #onBroken: (cluster: string, endpoint: string, error: Error) => void
  readonly #counting: UpstreamCounting
  readonly #news: UpstreamNews | undefined
  readonly #guard: DialGuard
  readonly #idleCloseMs: ((cluster: string) => number) | undefined

  /**
   * @param counting default: only `describe` shows it
   * @param idleCloseMs after how long an HTTP/2 connection without requests is closed. Default: a minute
   */
  constructor(
    onBroken: (cluster: string, endpoint: string, error: Error) => void,
    guard: DialGuard,
    counting: UpstreamCounting = { http2Upstreams: createHttp2Counters(), upstream: createUpstreamCounters },
    news?: UpstreamNews,
    idleCloseMs?: (cluster: string) => number,
  ) {
    this.#news = news
    this.#idleCloseMs = idleCloseMs
    this.#guard = guard
    this.#onBroken = onBroken
    this.#counting = counting
  }

  get(cluster: string, url: string): UpstreamEndpoint | undefined {
    const entry = this.#clusters.get(cluster)?.get(url)
    return entry?.connections ?? (entry && this.#connect(cluster, entry))
  }

  /** Updates the connections of one cluster; others are unaffected. */
  update(cluster: CompiledCluster): void {
    const before = this.#clusters.get(cluster.name) ?? new Map<string, ClusterEndpoint>()
    const after = new Map<string, ClusterEndpoint>()
    for (const endpoint of cluster.endpoints) {
      const known = before.get(endpoint.url)
      const stays = known !== undefined && known.name === nameOf(endpoint)
      if (stays && sameClient(known.client, cluster.client)) after.set(endpoint.url, known)
      else {
        const name = nameOf(endpoint)
        after.set(endpoint.url, { compiled: endpoint, client: cluster.client, name, connections: undefined })
      }
    }
    for (const [url, entry] of before) if (after.get(url) !== entry) entry.connections?.drain()
    this.#clusters.set(cluster.name, after)
  }

  remove(cluster: string): void {
    for (const entry of this.#clusters.get(cluster)?.values() ?? []) entry.connections?.drain()
    this.#clusters.delete(cluster)
    this.#shared.get(cluster)?.relists.destroy()
    this.#shared.delete(cluster)
  }

  #connect(cluster: string, entry: ClusterEndpoint): UpstreamEndpoint {
    const { compiled, client } = entry
    const onBroken = (error: Error): void => this.#onBroken(cluster, compiled.url, error)
    const counters = { http2: this.#counting.http2Upstreams, pool: this.#counting.upstream(cluster, compiled.url) }
    const shared = this.#sharedBy(cluster)
    entry.connections = createUpstreamEndpoint(compiled, client, { onBroken }, counters, shared, this.#guard)
    return entry.connections
  }

  #sharedBy(cluster: string): SharedByCluster {
    const known = this.#shared.get(cluster)
    if (known !== undefined) return known
    const shared: SharedByCluster = {
      cluster,
      relists: new Relists((active) => this.#news?.relisting(cluster, active)),
      offenders: new Offenders(),
      idleCloseMs: () => this.#idleCloseMs?.(cluster) ?? IDLE_CLOSE_MS,
      onQuarantined: (charge, forMs) => this.#news?.quarantined(cluster, charge, forMs),
    }
    this.#shared.set(cluster, shared)
    return shared
  }

  destroy(): void {
    for (const { relists } of this.#shared.values()) relists.destroy()
    this.#shared.clear()
    for (const entries of this.#clusters.values()) for (const entry of entries.values()) entry.connections?.destroy()
    this.#clusters.clear()
  }

  /**
   * The number of connections to each endpoint that has had some. Allocates nothing: it is asked every few seconds, for thousands of endpoints.
   */
  countConnections(count: (cluster: string, endpoint: string, connections: number) => void): void {
    for (const [cluster, entries] of this.#clusters) {
      for (const [endpoint, { connections }] of entries) {
        if (connections !== undefined) count(cluster, endpoint, connections.connections)
      }
    }
  }

  /** The connections of every endpoint that has had some, for /debug. */
  *describe(): Iterable<PoolDescription> {
    for (const [cluster, entries] of this.#clusters) {
      for (const [endpoint, { connections }] of entries) {
        if (connections !== undefined) yield { cluster, endpoint, ...connections.describe() }
      }
    }
  }
}

function nameOf({ of }: CompiledEndpoint): string {
  return of?.name ?? ''
}

/** Whether connections made with `a` may serve `b`; limits of our own calls are irrelevant. */
function sameClient(a: CompiledClient, b: CompiledClient): boolean {
  return (
    a.insecure === b.insecure &&
    a.ca === b.ca &&
    a.cert === b.cert &&
    a.key === b.key &&
    a.serverName === b.serverName &&
    a.bearerToken === b.bearerToken
  )
}
