// Which clusters of this replica a choice stands for, at the moment at which it is made.

import { type ClusterChoice, chooseClusters, readChoice } from '../../../gateway/core/choice/choose-clusters.ts'
import type { ClusterTable } from '../../../gateway/state/clusters.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'

/** The clusters that this replica serves. */
export type ClustersHere = Pick<ClusterTable, 'values'>

export function clusterNames(clusters: ClustersHere): readonly string[] {
  return Array.from(clusters.values(), ({ compiled }) => compiled.name)
}

/** @returns their names; or a line that says why there are none */
export function chosenNames(choice: ClusterChoice, clusters: ClustersHere): readonly string[] | string {
  try {
    const known = Array.from(clusters.values(), ({ compiled: { name, labels } }) => ({ name, labels }))
    return chooseClusters(readChoice(choice), known).map(({ name }) => name)
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return error.fix === '' ? error.message : `${error.message}; ${error.fix}`
  }
}
