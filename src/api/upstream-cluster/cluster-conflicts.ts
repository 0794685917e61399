// What can be wrong between two UpstreamClusters: both claim one host name, address or listener port, or both are the default.

import { canonicalIp } from '../validation/ip-address.ts'
import type { UpstreamCluster } from './upstream-cluster.ts'

/** Something that only one cluster can have. */
export interface Claim {
  /** Equal for claims that exclude each other. */
  readonly key: string
  /** For messages: `host name "a.example.com"`. */
  readonly what: string
  /** Where in the object it is made. */
  readonly path: string
}

export interface ClusterConflict {
  /** The cluster that must not be loaded as it is. */
  readonly loser: string
  /** The cluster that keeps the claim. */
  readonly holder: string
  readonly claim: Claim
}

/** Host names without case and trailing dot, addresses in canonical form. */
export function claimsOf(cluster: UpstreamCluster): readonly Claim[] {
  const { metadata, spec } = cluster
  const claims = [hostClaim(metadata.name, 'metadata.name')]
  for (const [index, name] of (spec.secureServing?.serverNames ?? []).entries()) {
    if (canonicalIp(name) === undefined) claims.push(hostClaim(name, `spec.secureServing.serverNames[${index}]`))
  }
  for (const [index, ip] of (spec.addresses?.ips ?? []).entries()) {
    const address = canonicalIp(ip) ?? ip
    claims.push({ key: `ip ${address}`, what: `address ${address}`, path: `spec.addresses.ips[${index}]` })
  }
  for (const [index, port] of (spec.addresses?.ports ?? []).entries()) {
    claims.push({ key: `port ${port}`, what: `listener port ${port}`, path: `spec.addresses.ports[${index}]` })
  }
  if (spec.default === true) claims.push({ key: 'default', what: 'the place of default cluster', path: 'spec.default' })
  return claims
}

function hostClaim(name: string, path: string): Claim {
  const host = name.toLowerCase().replace(/\.$/, '')
  return { key: `host ${host}`, what: `host name ${JSON.stringify(host)}`, path }
}

/**
 * All conflicts among `clusters`, whose names differ. A claim goes to the cluster that `holds` says has it now, else to the
 * first in the order given: nobody takes over traffic by being added.
 */
export function findConflicts(
  clusters: readonly UpstreamCluster[],
  holds: (cluster: string, key: string) => boolean,
): readonly ClusterConflict[] {
  const winners = new Map<string, string>()
  const claims = clusters.map((cluster) => ({ name: cluster.metadata.name, claims: claimsOf(cluster) }))
  for (const { name, claims: made } of claims) {
    for (const { key } of made) if (!winners.has(key) || holds(name, key)) winners.set(key, name)
  }
  const conflicts: ClusterConflict[] = []
  for (const { name, claims: made } of claims) {
    const keys = new Set<string>()
    for (const claim of made) {
      const holder = winners.get(claim.key) ?? name
      if (holder !== name && !keys.has(claim.key)) conflicts.push({ loser: name, holder, claim })
      keys.add(claim.key)
    }
  }
  return conflicts
}

/** The claims that are in force, as `findConflicts` asks for them. */
export function heldClaims(inForce: Iterable<UpstreamCluster>): (cluster: string, key: string) => boolean {
  const holders = new Map<string, string>()
  for (const cluster of inForce) for (const { key } of claimsOf(cluster)) holders.set(key, cluster.metadata.name)
  return (cluster, key) => holders.get(key) === cluster
}
