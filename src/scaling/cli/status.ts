// `portcullis scale status`: the cluster-autoscalers of all clusters and their node groups, from the statuses of the UpstreamClusters.

import {
  type ChosenMembers,
  type ClusterArguments,
  readArguments,
  readChosenMembers,
} from '../../cli/client/chosen-clusters.ts'
import { type ControlPlaneOptions, getCluster, withControlPlane } from '../../cli/client/control-plane.ts'
import { federationOf } from '../../cli/client/federated-members.ts'
import type { NodeGroupReport } from '../../gateway/api/upstream-cluster/cluster-autoscaler.ts'
import type { UpstreamClusterStatus } from '../../gateway/api/upstream-cluster/status.ts'
import { isBackedOff, isUnhealthy } from '../../gateway/core/autoscaler-status/report.ts'
import { conditionOf } from '../../gateway/core/status/cluster-status.ts'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { recordOf } from '../../kit/api/json/object-shape.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { textTable } from '../../kit/core/text/text-table.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { ageText } from '../../protection/cli/objects.ts'

export interface ScaleStatusOptions extends ControlPlaneOptions, Partial<ClusterArguments> {
  /** Only this one; a federated one stands for its members. Default: all, or those that the arguments choose. */
  readonly cluster?: string
  /** Default `text`. */
  readonly output?: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** One cluster, as printed by `-o json`. */
interface ClusterLine {
  readonly cluster: string
  /** Reason of the condition AutoscalerHealthy: Healthy, Backoff, Unhealthy, Stale, NotFound ... */
  readonly state: string
  /** When it last became healthy or unhealthy, RFC 3339; '' = unknown. */
  readonly since: string
  readonly message: string
  /** The condition is not true, or a group is in backoff. */
  readonly trouble: boolean
  readonly health: string
  readonly scaleUp: string
  readonly scaleDown: string
  readonly groups: readonly NodeGroupReport[]
  readonly omittedGroups: number
}

const HEAD = ['CLUSTER', 'GROUP', 'SCALE-UP', 'FOR', 'HEALTH', 'TARGET', 'NODES', 'READY', 'NO NODE', 'MIN', 'MAX']

/** Resolves with the exit code: 1 if an autoscaler is not known to be healthy, or a node group is in backoff. */
export function scaleStatus(options: ScaleStatusOptions): Promise<number> {
  const { output = 'text', out, err, now } = options
  return withControlPlane({ ...options, needs: 'get and list of upstreamclusters' }, async (client) => {
    if (output !== 'text' && output !== 'json') {
      throw new UserError(`--output ${JSON.stringify(output)} is not known`, 'write --output json, or leave it out')
    }
    const { objects, faults } = await chosen(client, options)
    for (const fault of faults) err(`error: ${fault}\n`)
    const followed = objects.filter(isFollowed)
    const lines = followed.map(lineOf).sort((a, b) => (a.cluster < b.cluster ? -1 : 1))
    const others = objects.filter((object) => !isFollowed(object)).map(nameOf)
    if (objects.length === 0 && faults.length > 0) return 1
    if (lines.length === 0) throw noneFollowed(others)
    if (output === 'json') out(`${JSON.stringify(lines, null, 2)}\n`)
    else out(textTable([HEAD, ...lines.flatMap((line) => rowsOf(line, now()))]))
    if (output === 'text') for (const text of lines.flatMap(remarks)) err(`${text}\n`)
    if (others.length > 0) err(`note: without spec.autoscaler, so not followed: ${others.sort().join(', ')}\n`)
    return faults.length > 0 || lines.some(({ trouble }) => trouble) ? 1 : 0
  })
}

async function chosen(client: ObjectClient, options: ScaleStatusOptions): Promise<ChosenMembers> {
  const { cluster, clusters = [], selector, all = false, except = [] } = options
  const chooses = clusters.length > 0 || selector !== undefined || all
  if (cluster !== undefined) {
    if (!chooses && except.length === 0) return await chosenByName(client, cluster)
    throw new UserError('--cluster is one cluster, and others are chosen', 'give its name as an argument, too')
  }
  return await readChosenMembers(client, readArguments({ ...options, clusters, all: all || !chooses }))
}

async function chosenByName(client: ObjectClient, name: string): Promise<ChosenMembers> {
  const object = await getCluster(client, name)
  if (federationOf(object) === undefined) return { objects: [object], faults: [] }
  return await readChosenMembers(client, readArguments({ clusters: [name] }))
}

function isFollowed({ spec }: JsonObject): boolean {
  return typeof recordOf(spec)['autoscaler'] === 'object' && recordOf(spec)['autoscaler'] !== null
}

function noneFollowed(others: readonly string[]): UserError {
  if (others.length === 0) return new UserError('there is no UpstreamCluster', 'is --kubeconfig the right one?')
  const [first = ''] = others
  const patch = `kubectl patch uc ${first} --type merge -p '{"spec":{"autoscaler":{}}}'`
  return new UserError(`no cluster-autoscaler is followed of: ${others.join(', ')}`, `add spec.autoscaler: ${patch}`)
}

function lineOf(object: JsonObject): ClusterLine {
  // Written by a gateway.
  const status = object['status'] as UpstreamClusterStatus | undefined
  const condition = conditionOf(status, 'AutoscalerHealthy')
  const { health = '', scaleUp = '', scaleDown = '', groups = [], omittedGroups = 0 } = status?.autoscaler ?? {}
  return {
    cluster: nameOf(object),
    state: condition?.reason ?? 'Pending',
    since: condition?.lastTransitionTime ?? '',
    message: condition?.message ?? 'no gateway has reported on it yet',
    trouble: condition?.status !== 'True' || groups.some(isBackedOff),
    health,
    scaleUp,
    scaleDown,
    groups,
    omittedGroups,
  }
}

function rowsOf({ cluster, groups, omittedGroups }: ClusterLine, nowMs: number): string[][] {
  const rows = groups.map((group) => {
    const { name, scaleUp = '-', scaleUpSince, health = '-' } = group
    const since = scaleUpSince === undefined ? '-' : ageText(scaleUpSince, nowMs)
    const { target, registered, ready, longUnregistered, minSize, maxSize } = group
    const numbers = [target, registered, ready, longUnregistered, minSize, maxSize]
    return [cluster, name, scaleUp, since, health, ...numbers.map((number = 0) => String(number))]
  })
  if (omittedGroups > 0) rows.push([cluster, `(${omittedGroups} more)`])
  return rows.length > 0 ? rows : [[cluster, '-']]
}

/** Details that don't fit into the table. */
function remarks({ cluster, state, message, trouble, groups }: ClusterLine): string[] {
  const failed = groups.filter((group) => isBackedOff(group) || isUnhealthy(group))
  const whys = failed.flatMap(({ name, errorCode = '', errorMessage = '' }) => {
    const why = [errorCode, errorMessage].filter((text) => text !== '').join(': ')
    return why === '' ? [] : [`${cluster}: ${name}: ${why}`]
  })
  return trouble ? [`warning: ${cluster}: ${state}: ${message}`, ...whys] : []
}
