// Claims of UpstreamClusters on what only one cluster can have, and which clusters a change can affect.

import { NamesByKey } from '../../../core/cluster/names-by-key.ts'

export class ClusterClaims {
  /** The claims of each cluster that makes any. */
  readonly #claims = new Map<string, readonly string[]>()
  readonly #claimants = new NamesByKey()
  /** Clusters changed since the last settlement, with their previous claims. */
  readonly #touched = new Map<string, readonly string[]>()

  get isTouched(): boolean {
    return this.#touched.size > 0
  }

  /** Replaces the claims of a cluster. */
  set(name: string, claims: readonly string[]): void {
    for (const claim of this.#of(name)) this.#claimants.remove(claim, name)
    for (const claim of claims) this.#claimants.add(claim, name)
    if (claims.length === 0) this.#claims.delete(name)
    else this.#claims.set(name, claims)
  }

  /** Includes a cluster in the next settlement; call it before its claims change. */
  touch(name: string): void {
    this.#touched.set(name, [...(this.#touched.get(name) ?? []), ...this.#of(name)])
  }

  /** The touched clusters, and all that claim what one of these claims, claimed or holds: no others can be affected. */
  affected(): ReadonlySet<string> {
    const names = new Set(this.#touched.keys())
    // Iterating a set includes members added along the way.
    for (const name of names) {
      const claims = [...(this.#touched.get(name) ?? []), ...this.#of(name)]
      for (const claim of claims) for (const other of this.#claimants.get(claim)) names.add(other)
    }
    return names
  }

  settled(): void {
    this.#touched.clear()
  }

  #of(name: string): readonly string[] {
    return this.#claims.get(name) ?? []
  }
}
