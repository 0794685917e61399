// The cluster-autoscaler part of an UpstreamCluster's status: bounded, whatever was in the ConfigMap, and without what changes on every
// write although nothing happened.

import { metaTime } from '../../../kit/core/text/meta-time.ts'
import type { AutoscalerReport, NodeGroupReport } from '../../api/upstream-cluster/cluster-autoscaler.ts'
import type { AutoscalerStatus, NodeGroupStatus } from './status.ts'

/** Maximum number of groups in a report and in metrics. */
export const MAX_NODE_GROUPS = 50
/** Longer texts are truncated: group names may be URLs. */
const MAX_NAME = 253
const MAX_WORD = 64
const MAX_MESSAGE = 256
/** Also the maximum of replicas, Go's int32. */
const MAX_COUNT = 2_147_483_647

export function reportOf({ health, scaleUp, scaleDown, groups }: AutoscalerStatus): AutoscalerReport {
  const shown = groups.map(groupReport).sort((a, b) => urgency(a) - urgency(b) || (a.name < b.name ? -1 : 1))
  const omittedGroups = Math.max(0, shown.length - MAX_NODE_GROUPS)
  return {
    ...texts({ health, scaleUp, scaleDown }),
    groups: shown.slice(0, MAX_NODE_GROUPS),
    ...(omittedGroups > 0 && { omittedGroups }),
  }
}

export function isBackedOff({ scaleUp }: Pick<NodeGroupReport, 'scaleUp'>): boolean {
  return scaleUp === 'Backoff'
}

export function isUnhealthy({ health }: Pick<NodeGroupReport, 'health'>): boolean {
  return health === 'Unhealthy'
}

function urgency(group: NodeGroupReport): number {
  if (isBackedOff(group)) return 0
  return isUnhealthy(group) ? 1 : 2
}

function groupReport(group: NodeGroupStatus): NodeGroupReport {
  const { name, health, scaleUp, scaleUpSinceMs, scaleDown, errorCode, errorMessage } = group
  const { minSize, maxSize, target, registered, ready, unready, longUnregistered } = group
  return {
    name: name.slice(0, MAX_NAME),
    ...texts({ health, scaleUp }),
    ...(scaleUpSinceMs > 0 && { scaleUpSince: metaTime(scaleUpSinceMs) }),
    ...texts({ scaleDown }),
    ...counts({ minSize, maxSize, target, registered, ready, unready, longUnregistered }),
    ...texts({ errorCode }),
    ...(errorMessage !== '' && { errorMessage: shortened(errorMessage) }),
  }
}

/** Drops empty texts, and truncates the others. */
function texts<Name extends string>(given: Readonly<Record<Name, string>>): Partial<Record<Name, string>> {
  const told = Object.entries<string>(given).filter(([, value]) => value !== '')
  return Object.fromEntries(told.map(([name, value]) => [name, value.slice(0, MAX_WORD)])) as Partial<
    Record<Name, string>
  >
}

function counts<Name extends string>(given: Readonly<Record<Name, number>>): Record<Name, number> {
  const bounded = Object.entries<number>(given).map(([name, value]) => [name, Math.min(value, MAX_COUNT)])
  return Object.fromEntries(bounded) as Record<Name, number>
}

function shortened(message: string): string {
  return message.length <= MAX_MESSAGE ? message : `${message.slice(0, MAX_MESSAGE - 3)}...`
}
