// Which UpstreamClusters claim what only one of them can have, and to whom a change of some of them can make a difference.

import { NamesByKey } from '../../../core/cluster/names-by-key.ts'

export class ClusterClaims {
  /** Of each cluster that makes any. */
  readonly #claims = new Map<string, readonly string[]>()
  readonly #claimants = new NamesByKey()
  /** Those that changed since the last settlement, with the claims that they made before. */
  readonly #touched = new Map<string, readonly string[]>()

  get isTouched(): boolean {
    return this.#touched.size > 0
  }

  /** It claims these now, and nothing else. */
  set(name: string, claims: readonly string[]): void {
    for (const claim of this.#of(name)) this.#claimants.remove(claim, name)
    for (const claim of claims) this.#claimants.add(claim, name)
    if (claims.length === 0) this.#claims.delete(name)
    else this.#claims.set(name, claims)
  }

  /** The next settlement is about it, too; to be called before its claims change. */
  touch(name: string): void {
    this.#touched.set(name, [...(this.#touched.get(name) ?? []), ...this.#of(name)])
  }

  /** Those touched, and whoever claims what one of these claims, claimed or has: nobody else can win or lose anything. */
  affected(): ReadonlySet<string> {
    const names = new Set(this.#touched.keys())
    // A set that grows while it is walked is walked to its new end.
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
