// Index of the host names, addresses and ports that clusters claim, for looking up a request's cluster. Updated incrementally, so that a
// change costs the same among thousands of clusters as among ten.

import { canonicalIp } from '../../../kit/api/validation/ip-address.ts'
import type { CompiledCluster } from './compiled-cluster.ts'

export interface ClusterIndex {
  /** By metadata.name, for path prefixes. */
  readonly byName: ReadonlyMap<string, CompiledCluster>
  /** By normalised host name or IP address. */
  readonly byHost: ReadonlyMap<string, CompiledCluster>
  /** `*.example.com` is stored as `example.com`. */
  readonly byWildcard: ReadonlyMap<string, CompiledCluster>
  /** By canonical address. */
  readonly byIp: ReadonlyMap<string, CompiledCluster>
  readonly byPort: ReadonlyMap<number, CompiledCluster>
  /** The cluster marked spec.default. */
  readonly fallback: CompiledCluster | undefined
}

/** If several clusters claim the same host, address, port or default, the first keeps it: a new cluster can't take over traffic. */
export class LiveClusterIndex implements ClusterIndex {
  readonly byName: Map<string, CompiledCluster> = new Map()
  readonly byHost: Map<string, CompiledCluster> = new Map()
  readonly byWildcard: Map<string, CompiledCluster> = new Map()
  readonly byIp: Map<string, CompiledCluster> = new Map()
  readonly byPort: Map<number, CompiledCluster> = new Map()
  fallback: CompiledCluster | undefined = undefined
  /** A claim was refused: once it becomes free, only a rebuild from all clusters can tell who gets it. */
  #contested = false

  /** Replaces the index with these clusters, in this order. */
  rebuild(clusters: Iterable<CompiledCluster>): void {
    for (const index of [this.byName, this.byHost, this.byWildcard, this.byIp]) index.clear()
    this.byPort.clear()
    this.fallback = undefined
    this.#contested = false
    for (const cluster of clusters) this.#add(cluster)
  }

  /** Applies one change; false = the claims are contested and `rebuild` must follow. */
  replace(before: CompiledCluster | undefined, after: CompiledCluster | undefined): boolean {
    if (this.#contested) return false
    if (before !== undefined) this.#remove(before)
    if (after !== undefined) this.#add(after)
    return !this.#contested
  }

  #add(cluster: CompiledCluster): void {
    this.#claim(this.byName, cluster.name, cluster)
    for (const host of cluster.hosts) {
      if (host.startsWith('*.')) this.#claim(this.byWildcard, normalizeHost(host.slice(2)), cluster)
      else this.#claim(this.byHost, normalizeHost(host), cluster)
    }
    for (const ip of cluster.ips) this.#claim(this.byIp, canonicalIp(ip) ?? ip, cluster)
    for (const port of cluster.ports) this.#claim(this.byPort, port, cluster)
    if (!cluster.isDefault) return
    if (this.fallback === undefined) this.fallback = cluster
    else this.#contested = true
  }

  #claim<Key>(index: Map<Key, CompiledCluster>, key: Key, cluster: CompiledCluster): void {
    const holder = index.get(key)
    if (holder === undefined) index.set(key, cluster)
    else if (holder !== cluster) this.#contested = true
  }

  /** Without contested claims, the cluster owns everything it claims. */
  #remove(cluster: CompiledCluster): void {
    this.byName.delete(cluster.name)
    for (const host of cluster.hosts) {
      if (host.startsWith('*.')) this.byWildcard.delete(normalizeHost(host.slice(2)))
      else this.byHost.delete(normalizeHost(host))
    }
    for (const ip of cluster.ips) this.byIp.delete(canonicalIp(ip) ?? ip)
    for (const port of cluster.ports) this.byPort.delete(port)
    if (this.fallback === cluster) this.fallback = undefined
  }
}

export function buildClusterIndex(clusters: Iterable<CompiledCluster>): ClusterIndex {
  const index = new LiveClusterIndex()
  index.rebuild(clusters)
  return index
}

/**
 * The host of an authority: lower-case, without port and without one trailing dot. IPv6 is returned without brackets, in canonical form;
 * IPv4-mapped IPv6 as IPv4.
 */
export function normalizeHost(authority: string): string {
  if (authority.startsWith('[')) {
    const close = authority.indexOf(']')
    const inner = authority.slice(1, close < 0 ? authority.length : close)
    return canonicalIp(inner) ?? inner.toLowerCase()
  }
  const colon = authority.indexOf(':')
  // More than one colon: an IPv6 address without brackets, and therefore without a port.
  if (colon >= 0 && authority.indexOf(':', colon + 1) >= 0) return canonicalIp(authority) ?? authority.toLowerCase()
  let end = colon < 0 ? authority.length : colon
  if (end > 1 && authority.charCodeAt(end - 1) === 0x2e) end--
  return authority.slice(0, end).toLowerCase()
}
