// Conflicts between two UpstreamClusters: the same host name, address or listener port, or two defaults.

import type { FieldError } from '../../../kit/api/json/field-error.ts'
import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { FieldErrors, reportable } from '../../../kit/api/validation/field-errors.ts'
import { canonicalIp } from '../../../kit/api/validation/ip-address.ts'
import type { UpstreamCluster } from './upstream-cluster.ts'

/** Something that only one cluster can own. */
interface Claim {
  /** Equal for claims that exclude each other. */
  readonly key: string
  /** For messages: `host name "a.example.com"`. */
  readonly what: string
  /** Path in the object. */
  readonly path: string
}

export interface ClusterConflict {
  /** The cluster that must not be loaded in this version. */
  readonly loser: string
  /** The cluster that keeps the claim. */
  readonly holder: string
  readonly claim: Claim
}

/** Host names are compared without case and trailing dot, addresses in canonical form. */
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
 * All conflicts among `clusters`, whose names differ. A claim goes to its current holder according to `holds`, else to the first cluster in the given
 * order: adding a cluster never takes over traffic.
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

/** The claims in force, in the form that `findConflicts` takes. */
export function heldClaims(inForce: Iterable<UpstreamCluster>): (cluster: string, key: string) => boolean {
  const holders = new Map<string, string>()
  for (const cluster of inForce) for (const { key } of claimsOf(cluster)) holders.set(key, cluster.metadata.name)
  return (cluster, key) => holders.get(key) === cluster
}

// Conflicts of one UpstreamCluster with all others, as its row of the scheme provides them, to refuse a write.

/** Objects are immutable, and the same ones are checked on every write. */
const known = new WeakMap<JsonObject, readonly Claim[]>()

/** Every claim of `object` that another cluster has too. Malformed parts, in either, claim nothing. */
export function conflictsWith(object: JsonObject, others: readonly JsonObject[]): readonly FieldError[] {
  const out = new FieldErrors()
  const wanted = new Map(claimsOfObject(object).map((claim) => [claim.key, claim]))
  const reported = new Set<string>()
  for (const other of others) {
    for (const { key, path } of claimsOfObject(other)) {
      const claim = wanted.get(key)
      if (claim === undefined || reported.has(key)) continue
      reported.add(key)
      const holder = JSON.stringify(nameOf(other))
      const message = `${claim.what} belongs to UpstreamCluster ${holder} (its ${path})`
      out.invalid(claim.path, message, 'choose another, or take it from that cluster first')
    }
  }
  return reportable(out.found, out.more)
}

/** Keys of all its claims. */
export function claimKeysOf(object: JsonObject): readonly string[] {
  return claimsOfObject(object).map(({ key }) => key)
}

function claimsOfObject(object: JsonObject): readonly Claim[] {
  const before = known.get(object)
  if (before !== undefined) return before
  const claims = claimsOf(claimingParts(object))
  known.set(object, claims)
  return claims
}

/** The parts that claims are made of, without anything of the wrong type. Entries keep their positions. */
function claimingParts(object: JsonObject): UpstreamCluster {
  const spec = recordAt(object, 'spec')
  const addresses = recordAt(spec, 'addresses')
  return {
    apiVersion: '',
    kind: '',
    metadata: { name: nameOf(object) },
    spec: {
      servers: [],
      dispatchPolicies: [],
      secureServing: { serverNames: listAt(recordAt(spec, 'secureServing'), 'serverNames').map(asText) },
      addresses: { ips: listAt(addresses, 'ips').map(asText), ports: listAt(addresses, 'ports').filter(isNumber) },
      default: spec['default'] === true,
    },
  }
}

function recordAt(object: JsonObject, key: string): JsonObject {
  const value = Object.hasOwn(object, key) ? object[key] : undefined
  return isRecord(value) ? value : {}
}

function listAt(object: JsonObject, key: string): readonly unknown[] {
  const value = Object.hasOwn(object, key) ? object[key] : undefined
  return Array.isArray(value) ? value : []
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}
