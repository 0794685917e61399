// Whether a cluster with members still hands requests of its users over to one of them.

import type { CompiledCluster } from './compiled-cluster.ts'

/** @param cluster as it is now; undefined = it is gone @param member the UpstreamCluster */
export function handsOver(cluster: CompiledCluster | undefined, member: string): boolean {
  return cluster?.federation?.members.some((one) => one.cluster === member && one.trustsUsers) === true
}
