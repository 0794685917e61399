// Whether a request is written to the access log: three switches, for gateway, cluster and policy.

import type { LogMode } from '../../api/upstream-cluster/upstream-cluster.ts'

/**
 * The gateway's switch must be on. Then `off` in the policy or the cluster wins, and at least one of the two must say `on`. Off applies to
 * every request, slow ones and 5xx included.
 */
export function accessLogEnabled(gateway: boolean, cluster: LogMode, policy: LogMode): boolean {
  if (!gateway || cluster === 'off' || policy === 'off') return false
  return cluster === 'on' || policy === 'on'
}
