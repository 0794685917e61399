// The ScaleDownPolicies of a thread, by workload. Checked on every write to a cluster, so the lookup is a single map access if there is
// no policy.

import { type CompiledSelector, compileSelector } from '../../kube/core/selectors/compile-selector.ts'
import type { CompiledScaleDownPolicy } from '../core/victim-choice/policy.ts'

interface Live {
  readonly policy: CompiledScaleDownPolicy
  readonly selector: CompiledSelector
}

export class ScaleDownPolicies {
  #byNamespace: ReadonlyMap<string, readonly Live[]> = new Map()

  /** Whether a scale-down there may have a policy. */
  covers(cluster: string, namespace: string): boolean {
    const live = this.#byNamespace.get(namespace)
    return live?.some(({ policy }) => isFor(policy, cluster)) === true
  }

  /** The first by name that selects these pods. */
  match(
    cluster: string,
    namespace: string,
    labels: Readonly<Record<string, string>>,
  ): CompiledScaleDownPolicy | undefined {
    const live = this.#byNamespace.get(namespace) ?? []
    return live.find(({ policy, selector }) => isFor(policy, cluster) && selector.matches(labels))?.policy
  }

  /** Replaces all. Policies with an invalid selector are left out. */
  replace(policies: readonly CompiledScaleDownPolicy[]): void {
    const found = new Map<string, Live[]>()
    for (const policy of [...policies].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const live = compiled(policy)
      if (live === undefined) continue
      const known = found.get(policy.namespace)
      if (known === undefined) found.set(policy.namespace, [live])
      else known.push(live)
    }
    this.#byNamespace = found
  }
}

function compiled(policy: CompiledScaleDownPolicy): Live | undefined {
  try {
    return { policy, selector: compileSelector(policy.selector) }
  } catch {
    return undefined
  }
}

function isFor({ clusters }: CompiledScaleDownPolicy, cluster: string): boolean {
  return clusters.length === 0 || clusters.includes(cluster)
}
