// Which clusters trust the same client CAs, or the same issuer of tokens: a credential is then verified once for all of them. Updated
// incrementally, so that a change costs the same among thousands of clusters as among ten.

import type { CompiledCluster, CompiledIssuer } from './compiled-cluster.ts'

/** By metadata.name. May change during an iteration, which still visits each cluster that is there all the time. */
type TrustingClusters = ReadonlyMap<string, CompiledCluster>

/** Clusters with an equal entry in spec.authentication.jwt. */
export interface TrustedIssuer {
  readonly issuer: CompiledIssuer
  readonly clusters: TrustingClusters
}

/** Those of one audience, by where the keys come from (CompiledIssuer.keys). */
type IssuersByKeys = ReadonlyMap<string, ReadonlySet<TrustedIssuer>>

export interface TrustIndex {
  /** By the PEM of spec.secureServing.clientCA; clusters without one are missing. */
  readonly byClientCA: ReadonlyMap<string, TrustingClusters>
  /** The issuers of this name that accept one of the audiences: an element for each audience, so that the same issuer may be in several. */
  issuersOf(name: string, audiences: Iterable<string>): IssuersByKeys[]
}

/** An issuer, with the clusters still to come. */
interface LiveIssuer extends TrustedIssuer {
  readonly clusters: Map<string, CompiledCluster>
}

export class LiveTrustIndex implements TrustIndex {
  readonly byClientCA = new Map<string, Map<string, CompiledCluster>>()
  /** By their JSON. */
  readonly #issuers = new Map<string, LiveIssuer>()
  /** By name, audience and keys. */
  readonly #byName = new Map<string, Map<string, Map<string, Set<TrustedIssuer>>>>()

  issuersOf(name: string, audiences: Iterable<string>): IssuersByKeys[] {
    const byAudience = this.#byName.get(name)
    const found: IssuersByKeys[] = []
    if (byAudience === undefined) return found
    for (const audience of new Set(audiences)) {
      const byKeys = byAudience.get(audience)
      if (byKeys !== undefined) found.push(byKeys)
    }
    return found
  }

  /** Applies one change of a cluster. */
  replace(before: CompiledCluster | undefined, after: CompiledCluster | undefined): void {
    // Added first, so that entries of both versions stay in their places.
    if (after !== undefined) this.#add(after)
    if (before !== undefined) this.#remove(before)
  }

  #add(cluster: CompiledCluster): void {
    const { clientCA } = cluster.serving
    if (clientCA !== '') child(this.byClientCA, clientCA).set(cluster.name, cluster)
    for (const [key, issuer] of issuersIn(cluster)) {
      const known = this.#issuers.get(key)
      const live = known ?? { issuer, clusters: new Map() }
      if (known === undefined) {
        this.#issuers.set(key, live)
        const byAudience = child(this.#byName, issuer.rules.issuer)
        for (const audience of issuer.rules.audiences) {
          const byKeys = child(byAudience, audience)
          byKeys.set(issuer.keys, (byKeys.get(issuer.keys) ?? new Set()).add(live))
        }
      }
      live.clusters.set(cluster.name, cluster)
    }
  }

  #remove(cluster: CompiledCluster): void {
    const { name, serving } = cluster
    dropOf(this.byClientCA, serving.clientCA, name, cluster)
    for (const [key] of issuersIn(cluster)) {
      const live = this.#issuers.get(key)
      if (live?.clusters.get(name) !== cluster) continue
      live.clusters.delete(name)
      if (live.clusters.size > 0) continue
      this.#issuers.delete(key)
      this.#forget(live)
    }
  }

  #forget(live: LiveIssuer): void {
    const { rules, keys } = live.issuer
    const byAudience = this.#byName.get(rules.issuer)
    for (const audience of rules.audiences) {
      const byKeys = byAudience?.get(audience)
      const issuers = byKeys?.get(keys)
      issuers?.delete(live)
      if (issuers?.size === 0) byKeys?.delete(keys)
      if (byKeys?.size === 0) byAudience?.delete(audience)
    }
    if (byAudience?.size === 0) this.#byName.delete(rules.issuer)
  }
}

/** If an issuer has several entries, the first decides about its tokens. */
function* issuersIn({ authentication }: CompiledCluster): Generator<[string, CompiledIssuer]> {
  const seen = new Set<string>()
  for (const issuer of authentication.issuers) {
    const { issuer: name } = issuer.rules
    if (seen.has(name)) continue
    seen.add(name)
    yield [JSON.stringify(issuer), issuer]
  }
}

function child<Key, Value>(map: Map<string, Map<Key, Value>>, key: string): Map<Key, Value> {
  const known = map.get(key)
  if (known !== undefined) return known
  const fresh = new Map<Key, Value>()
  map.set(key, fresh)
  return fresh
}

function dropOf<Value>(map: Map<string, Map<string, Value>>, key: string, name: string, value: Value): void {
  const values = map.get(key)
  if (values?.get(name) !== value) return
  values.delete(name)
  if (values.size === 0) map.delete(key)
}
