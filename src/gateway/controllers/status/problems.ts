// The problems of a delivery, by cluster.

import { sameJson } from '../../../kit/core/text/same-json.ts'
import type { SourceError } from '../../api/resource-source.ts'

const NONE: readonly SourceError[] = []

export class ProblemIndex {
  #read: readonly SourceError[] = NONE
  #byCluster: ReadonlyMap<string, readonly SourceError[]> = new Map()

  of(cluster: string): readonly SourceError[] {
    return this.#byCluster.get(cluster) ?? NONE
  }

  /** Reads a delivery, unless it is the same array as before. Returns the clusters whose problems have changed. */
  read(problems: readonly SourceError[]): readonly string[] {
    if (problems === this.#read) return []
    const before = this.#byCluster
    const after = new Map<string, SourceError[]>()
    for (const problem of problems) {
      if (problem.cluster === undefined || problem.cluster === '') continue
      const those = after.get(problem.cluster)
      if (those === undefined) after.set(problem.cluster, [problem])
      else those.push(problem)
    }
    this.#read = problems
    this.#byCluster = after
    return [...new Set([...before.keys(), ...after.keys()])].filter(
      (name) => !sameJson(before.get(name), after.get(name)),
    )
  }
}
