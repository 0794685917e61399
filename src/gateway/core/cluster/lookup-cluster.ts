// Finds the cluster of a request: path prefix, host name, destination IP, listener port, default; in this order. A lookup by host is one
// map access on a normalised name (cluster-index.ts).

import { canonicalIp } from '../../../kit/api/validation/ip-address.ts'
import { absoluteFormAuthority, originForm } from '../request/request-target.ts'
import { type ClusterIndex, normalizeHost } from './cluster-index.ts'
import type { CompiledCluster } from './compiled-cluster.ts'

export interface LookupKey {
  /** `:authority` or Host, as received. */
  authority: string
  /** The raw request target. */
  target: string
  /** Local address of the client's connection. */
  localAddress: string
  localPort: number
}

interface LookupResult {
  cluster: CompiledCluster
  /** The request target for upstream: without the path prefix, in origin-form. */
  target: string
  via: 'path' | 'host' | 'ip' | 'port' | 'default'
}

const PATH_PREFIX = '/clusters/'
/** Maximum length of a name echoed in a refusal: that of a DNS name. */
const MAX_NAME_SHOWN = 253

const LIST = '/clusters'

/**
 * Whether the request asks the gateway which clusters there are for its sender. No cluster is asked for by it: what stands below this path is always a
 * name. A host name, address or port that selects a cluster goes first, the default cluster does not.
 */
export function asksForClusters(
  method: string,
  target: string,
  found: LookupResult | { readonly unknown: string },
): boolean {
  if (method !== 'GET' || !('unknown' in found || found.via === 'default')) return false
  const path = originForm(target)
  return path === LIST || path.startsWith(`${LIST}?`)
}

/** A name that no cluster can have. */
const LOGOUT = '/clusters/-/backchannel-logout'

/** Whether an OpenID provider tells the gateway of a logout. */
export function tellsOfLogout(method: string, target: string): boolean {
  if (method !== 'POST') return false
  const path = originForm(target)
  return path === LOGOUT || path.startsWith(`${LOGOUT}?`)
}

/** `unknown` is the requested host name or path prefix. */
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

/** `/clusters/prod/api?x` -> `/api?x`. Compared without decoding, so that an encoded slash can't be part of a name. */
function lookupPath(index: ClusterIndex, target: string): LookupResult | { unknown: string } {
  let end = PATH_PREFIX.length
  while (end < target.length && target.charCodeAt(end) !== 0x2f && target.charCodeAt(end) !== 0x3f) end++
  const name = target.slice(PATH_PREFIX.length, end)
  const cluster = index.byName.get(name)
  // Never the default cluster: the prefix names a specific one.
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
