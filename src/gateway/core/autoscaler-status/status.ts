// State of a cluster-autoscaler and its node groups.

import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { parseYaml } from '../../../kube/core/objects/yaml-text.ts'

export interface AutoscalerStatus {
  /** `Running` or `Initializing`; '' = unknown. */
  readonly state: string
  /** Milliseconds since the epoch; 0 = unknown. */
  readonly writtenAtMs: number
  readonly health: string
  readonly scaleUp: string
  readonly scaleDown: string
  readonly groups: readonly NodeGroupStatus[]
}

export interface NodeGroupStatus {
  readonly name: string
  /** `Healthy` or `Unhealthy`. */
  readonly health: string
  /** `InProgress`, `NoActivity`, `Backoff`, `Unhealthy`. */
  readonly scaleUp: string
  /** `CandidatesPresent` or `NoCandidates`. */
  readonly scaleDown: string
  readonly minSize: number
  readonly maxSize: number
  readonly target: number
  readonly registered: number
  readonly ready: number
  readonly unready: number
  /** Instances without a Node, for longer than `--max-node-provision-time`. */
  readonly longUnregistered: number
  /** With `Backoff`. */
  readonly errorCode: string
  readonly errorMessage: string
  /** When `scaleUp` last changed, milliseconds since the epoch; 0 = unknown. */
  readonly scaleUpSinceMs: number
}

const GO_TIME = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(\.\d{1,9})? ?(Z|[+-]\d{2}:?\d{2})/

/** Parses `2006-01-02 15:04:05.999999999 -0700 MST` and RFC 3339. @returns 0 = it is neither */
export function goTime(text: string): number {
  const [, date = '', time = '', fraction = '', zone = ''] = GO_TIME.exec(text) ?? []
  const offset = /^[+-]\d{4}$/.test(zone) ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone
  const ms = Date.parse(`${date}T${time}${fraction.slice(0, 4)}${offset}`)
  return Number.isFinite(ms) ? ms : 0
}

// Strips what changes on every write: the autoscaler writes every ten seconds, and mostly only the times change.
const PROBE_TIMES = /^(?:time: |[ -]*lastProbeTime: ).*$/gm
const HEAD_TIME = /^time: "?(.{1,100})/m

/** When the status was written according to itself, milliseconds since the epoch; 0 = unknown. */
export function writtenAt(text: string): number {
  return goTime(HEAD_TIME.exec(text)?.[1] ?? '')
}

/** Statuses with equal results are equal, apart from when they were written. */
export function withoutProbeTimes(text: string): string {
  return text.replaceAll(PROBE_TIMES, '')
}

// Parses the status that the cluster-autoscaler writes into ConfigMap kube-system/cluster-autoscaler-status, as YAML since 1.30
// (cluster-autoscaler/clusterstate/api/types.go). What is not understood is left out, never an error.

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
