// Decides whether a request is written to the access log: three switches, gateway, cluster and policy.

import type { LogMode } from '../../api/upstream-cluster/upstream-cluster.ts'

/**
 * The gateway's switch must be on. Then a policy that says `off`, or a cluster that says `off`, is off; one of the two
 * must say `on`. Off is off for every request: slow ones and 5xx included.
 */
export function accessLogEnabled(gateway: boolean, cluster: LogMode, policy: LogMode): boolean {
  if (!gateway || cluster === 'off' || policy === 'off') return false
  return cluster === 'on' || policy === 'on'
}
