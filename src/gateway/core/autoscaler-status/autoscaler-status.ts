// Parses the status that the cluster-autoscaler writes into ConfigMap kube-system/cluster-autoscaler-status, as YAML since 1.30
// (cluster-autoscaler/clusterstate/api/types.go). What is not understood is left out, never an error.

import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { parseYaml } from '../../../kube/core/objects/yaml-text.ts'
import { type AutoscalerStatus, goTime, type NodeGroupStatus } from './status.ts'

/** Annotation of the ConfigMap: when it was written, in Go's format. */
export const LAST_UPDATED = 'cluster-autoscaler.kubernetes.io/last-updated'

/** Whether an autoscaler before 1.30 wrote it: free text, which is not parsed. */
export function isTextFormat(status: string): boolean {
  return status.startsWith('Cluster-autoscaler status at ')
}

/** @returns undefined = it contains no status */
export function readAutoscalerStatus(configMap: unknown): AutoscalerStatus | undefined {
  const { data, metadata } = recordOf(configMap)
  const text = textOf(recordOf(data)['status'])
  if (text === '') return undefined
  const writtenAtMs = goTime(textOf(recordOf(recordOf(metadata)['annotations'])[LAST_UPDATED]))
  const status = isTextFormat(text) ? undefined : readYamlStatus(text)
  if (status === undefined) return undefined
  return status.writtenAtMs === 0 ? { ...status, writtenAtMs } : status
}

function readYamlStatus(text: string): AutoscalerStatus | undefined {
  let fields: Readonly<Record<string, unknown>>
  try {
    fields = recordOf(parseYaml(text).value)
  } catch {
    return undefined
  }
  const { autoscalerStatus, time, clusterWide, nodeGroups } = fields
  if (typeof autoscalerStatus !== 'string') return undefined
  const wide = recordOf(clusterWide)
  const groups = Array.isArray(nodeGroups) ? nodeGroups.map((group) => readGroup(recordOf(group))) : []
  return {
    state: autoscalerStatus,
    writtenAtMs: goTime(textOf(time)),
    health: statusOf(wide['health']),
    scaleUp: statusOf(wide['scaleUp']),
    scaleDown: statusOf(wide['scaleDown']),
    groups: groups.filter(({ name }) => name !== ''),
  }
}

function readGroup({ name, health, scaleUp, scaleDown }: Readonly<Record<string, unknown>>): NodeGroupStatus {
  const { nodeCounts, cloudProviderTarget, minSize, maxSize } = recordOf(health)
  const { registered, longUnregistered } = recordOf(nodeCounts)
  const { total, ready, unready } = recordOf(registered)
  const { errorCode, errorMessage } = recordOf(recordOf(scaleUp)['backoffInfo'])
  return {
    name: textOf(name),
    health: statusOf(health),
    scaleUp: statusOf(scaleUp),
    scaleDown: statusOf(scaleDown),
    minSize: count(minSize),
    maxSize: count(maxSize),
    target: count(cloudProviderTarget),
    registered: count(total),
    ready: count(ready),
    unready: count(recordOf(unready)['total']),
    longUnregistered: count(longUnregistered),
    errorCode: textOf(errorCode),
    errorMessage: textOf(errorMessage),
    scaleUpSinceMs: goTime(textOf(recordOf(scaleUp)['lastTransitionTime'])),
  }
}

function statusOf(part: unknown): string {
  return textOf(recordOf(part)['status'])
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0
}
