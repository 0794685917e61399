// Which cluster a request is for: path prefix, host name, destination IP, listener port, default; in this order.
// The index is built once per change; a lookup by host is one map access on a normalised name.

import { canonicalIp } from '../api/ip-address.ts'
import type { CompiledCluster } from './compiled-cluster.ts'
import { absoluteFormAuthority, originForm } from './request-target.ts'

export interface ClusterIndex {
  /** By metadata.name, for path prefixes. */
  readonly byName: ReadonlyMap<string, CompiledCluster>
  /** By normalised host name or IP address. */
  readonly byHost: ReadonlyMap<string, CompiledCluster>
  /** `*.example.com` is here as `example.com`. */
  readonly byWildcard: ReadonlyMap<string, CompiledCluster>
  /** By canonical address. */
  readonly byIp: ReadonlyMap<string, CompiledCluster>
  readonly byPort: ReadonlyMap<number, CompiledCluster>
  /** The cluster marked spec.default. */
  readonly fallback: CompiledCluster | undefined
}

export interface LookupKey {
  /** `:authority` or Host, as received. */
  authority: string
  /** The raw request target. */
  target: string
  /** Where the client's connection arrived. */
  localAddress: string
  localPort: number
}

export interface LookupResult {
  cluster: CompiledCluster
  /** What upstream is to be asked: without the path prefix, in origin-form. */
  target: string
  via: 'path' | 'host' | 'ip' | 'port' | 'default'
}

const PATH_PREFIX = '/clusters/'
/** Longest name that a refusal repeats; a DNS name has no more. */
const MAX_NAME_SHOWN = 253

/** Of clusters that claim the same host, address, port or default, the first keeps it: nobody takes over traffic by being added. */
export function buildClusterIndex(clusters: Iterable<CompiledCluster>): ClusterIndex {
  const byName = new Map<string, CompiledCluster>()
  const byHost = new Map<string, CompiledCluster>()
  const byWildcard = new Map<string, CompiledCluster>()
  const byIp = new Map<string, CompiledCluster>()
  const byPort = new Map<number, CompiledCluster>()
  let fallback: CompiledCluster | undefined
  for (const cluster of clusters) {
    claim(byName, cluster.name, cluster)
    for (const host of cluster.hosts) {
      if (host.startsWith('*.')) claim(byWildcard, normalizeHost(host.slice(2)), cluster)
      else claim(byHost, normalizeHost(host), cluster)
    }
    for (const ip of cluster.ips) claim(byIp, canonicalIp(ip) ?? ip, cluster)
    for (const port of cluster.ports) claim(byPort, port, cluster)
    if (cluster.isDefault) fallback ??= cluster
  }
  return { byName, byHost, byWildcard, byIp, byPort, fallback }
}

function claim<Key>(index: Map<Key, CompiledCluster>, key: Key, cluster: CompiledCluster): void {
  if (!index.has(key)) index.set(key, cluster)
}

/** `unknown` is what was asked for: a host name, or a path prefix. */
export function lookupCluster(index: ClusterIndex, key: LookupKey): LookupResult | { unknown: string } {
  let { authority, target } = key
  if (target.charCodeAt(0) !== 0x2f) {
    // An absolute-form target outranks Host (RFC 9112 section 3.2.2).
    const named = absoluteFormAuthority(target)
    if (named !== '') authority = named
    target = originForm(target)
  }
  if (target.startsWith(PATH_PREFIX)) return lookupPath(index, target)
  const host = normalizeHost(authority)
  const byHost = clusterForHost(index, host)
  if (byHost !== undefined) return { cluster: byHost, target, via: 'host' }
  const byIp = clusterForIp(index, key.localAddress)
  if (byIp !== undefined) return { cluster: byIp, target, via: 'ip' }
  const byPort = index.byPort.get(key.localPort)
  if (byPort !== undefined) return { cluster: byPort, target, via: 'port' }
  if (index.fallback !== undefined) return { cluster: index.fallback, target, via: 'default' }
  return { unknown: (host === '' ? key.localAddress : host).slice(0, MAX_NAME_SHOWN) }
}

/** `/clusters/prod/api?x` -> `/api?x`. Compared as bytes: no decoding, so that an encoded slash cannot be part of a name. */
function lookupPath(index: ClusterIndex, target: string): LookupResult | { unknown: string } {
  let end = PATH_PREFIX.length
  while (end < target.length && target.charCodeAt(end) !== 0x2f && target.charCodeAt(end) !== 0x3f) end++
  const name = target.slice(PATH_PREFIX.length, end)
  const cluster = index.byName.get(name)
  // Not the default cluster's business: whoever wrote the prefix meant one cluster.
  if (cluster === undefined) return { unknown: `${PATH_PREFIX}${name.slice(0, MAX_NAME_SHOWN)}` }
  const rest = target.slice(end)
  return { cluster, target: rest.charCodeAt(0) === 0x2f ? rest : `/${rest}`, via: 'path' }
}

/** For the TLS handshake: exact and wildcard names, never the default cluster. */
export function clusterForServerName(index: ClusterIndex, sni: string): CompiledCluster | undefined {
  return clusterForHost(index, normalizeHost(sni))
}

/** For connections without SNI: destination IP, then listener port. */
export function clusterForAddress(
  index: ClusterIndex,
  localAddress: string,
  localPort: number,
): CompiledCluster | undefined {
  return clusterForIp(index, localAddress) ?? index.byPort.get(localPort)
}

/** `host` is normalised. A wildcard covers exactly one label, so the longest that fits is the only one that fits. */
function clusterForHost(index: ClusterIndex, host: string): CompiledCluster | undefined {
  const exact = index.byHost.get(host)
  if (exact !== undefined || index.byWildcard.size === 0) return exact
  const dot = host.indexOf('.')
  return dot > 0 ? index.byWildcard.get(host.slice(dot + 1)) : undefined
}

function clusterForIp(index: ClusterIndex, address: string): CompiledCluster | undefined {
  if (index.byIp.size === 0) return undefined
  return index.byIp.get(address) ?? index.byIp.get(canonicalIp(address) ?? '')
}

/**
 * The host of an authority: lower-case, without port and without one trailing dot. IPv6 comes out without brackets, in
 * canonical form; IPv4-mapped IPv6 as IPv4.
 */
export function normalizeHost(authority: string): string {
  if (authority.startsWith('[')) {
    const close = authority.indexOf(']')
    const inner = authority.slice(1, close < 0 ? authority.length : close)
    return canonicalIp(inner) ?? inner.toLowerCase()
  }
  const colon = authority.indexOf(':')
  // More than one colon: an IPv6 address without brackets, and so without port.
  if (colon >= 0 && authority.indexOf(':', colon + 1) >= 0) return canonicalIp(authority) ?? authority.toLowerCase()
  let end = colon < 0 ? authority.length : colon
  if (end > 1 && authority.charCodeAt(end - 1) === 0x2e) end--
  return authority.slice(0, end).toLowerCase()
}
