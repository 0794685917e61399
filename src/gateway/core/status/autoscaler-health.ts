// Condition AutoscalerHealthy and the Events about a cluster-autoscaler, derived from its own status.

import { formatDuration } from '../../../kit/core/text/duration.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'
import type { StatusTransition } from '../../../kube/core/status-transition.ts'
import type { NodeGroupReport } from '../../api/upstream-cluster/cluster-autoscaler.ts'
import type { UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'
import { isBackedOff, isUnhealthy } from '../autoscaler-status/report.ts'
import { joinedMessages } from './messages.ts'
import type { AutoscalerFact } from './status-facts.ts'

interface AutoscalerVerdict {
  readonly status: 'True' | 'False' | 'Unknown'
  /** Healthy, Backoff, Unhealthy, Initializing, Stale, NotFound, Unreadable, Unreachable, Pending. */
  readonly reason: string
  readonly message: string
}

/** This many are named, the others counted. */
const NAMED_GROUPS = 5

export function autoscalerVerdict(fact: AutoscalerFact): AutoscalerVerdict {
  const { where, seen, report, writtenAtMs, staleAfterMs } = fact
  const say = (status: AutoscalerVerdict['status'], reason: string, message: string): AutoscalerVerdict => {
    return { status, reason, message }
  }
  switch (seen) {
    case 'pending':
      return say('Unknown', 'Pending', `ConfigMap ${where} has not been read yet`)
    case 'unreachable':
      return say('Unknown', 'Unreachable', `ConfigMap ${where} cannot be followed: ${fact.message}`)
    case 'missing':
      return say('Unknown', 'NotFound', `there is no ConfigMap ${where}: the cluster-autoscaler has not written one`)
    case 'unreadable':
      return say('Unknown', 'Unreadable', `ConfigMap ${where} does not hold a status that can be read: ${fact.message}`)
    case 'stale': {
      const last = writtenAtMs === 0 ? '' : `, the last time at ${metaTime(writtenAtMs)}`
      const told = `it has not been written for ${formatDuration(staleAfterMs)}${last}`
      return say('False', 'Stale', `ConfigMap ${where}: ${told}; is the cluster-autoscaler running?`)
    }
    case 'current':
      break
  }
  const groups = report?.groups ?? []
  const all = groups.length + (report?.omittedGroups ?? 0)
  if (fact.state !== 'Running') {
    return say('Unknown', 'Initializing', 'the cluster-autoscaler has not finished its first loop')
  }
  const unhealthy = groups.filter(isUnhealthy)
  if (report !== undefined && isUnhealthy(report)) {
    return say('False', 'Unhealthy', 'too many nodes are unready: the cluster-autoscaler neither adds nor removes any')
  }
  if (unhealthy.length > 0) {
    return say('False', 'Unhealthy', `${unhealthy.length} of ${all} node groups are unhealthy: ${named(unhealthy)}`)
  }
  const backedOff = groups.filter(isBackedOff)
  if (backedOff.length > 0) {
    const message = `${backedOff.length} of ${all} node groups are in backoff: ${named(backedOff)}`
    return say('True', 'Backoff', message)
  }
  return say('True', 'Healthy', `${all} node groups, none in backoff`)
}

function named(groups: readonly NodeGroupReport[]): string {
  const names = groups.slice(0, NAMED_GROUPS).map(({ name }) => name)
  const left = groups.length - names.length
  return `${names.join(', ')}${left > 0 ? ` and ${left} more` : ''}`
}

/** Groups that entered or left backoff, and an autoscaler that went silent or came back. */
export function autoscalerTransitions(
  before: UpstreamClusterStatus | undefined,
  after: UpstreamClusterStatus,
): readonly StatusTransition[] {
  return [...healthTransitions(before, after), ...backoffTransitions(before, after)]
}

const FAULTS: ReadonlyMap<string, string> = new Map([
  ['Stale', 'AutoscalerStale'],
  ['Unhealthy', 'AutoscalerUnhealthy'],
])

function healthTransitions(
  before: UpstreamClusterStatus | undefined,
  after: UpstreamClusterStatus,
): readonly StatusTransition[] {
  const now = healthOf(after)
  const was = healthOf(before)
  if (now === undefined || now.reason === was?.reason) return []
  const fault = FAULTS.get(now.reason)
  if (fault !== undefined) return [{ type: 'Warning', reason: fault, message: now.message }]
  // Whatever happened in between: it had been reported as broken.
  const recovered = now.status === 'True' && was?.status === 'False'
  return recovered ? [{ type: 'Normal', reason: 'AutoscalerHealthy', message: now.message }] : []
}

function backoffTransitions(
  before: UpstreamClusterStatus | undefined,
  after: UpstreamClusterStatus,
): readonly StatusTransition[] {
  const groups = after.autoscaler?.groups
  if (groups === undefined) return []
  const were = new Set((before?.autoscaler?.groups ?? []).filter(isBackedOff).map(({ name }) => name))
  const are = groups.filter(isBackedOff)
  const entered = are.filter(({ name }) => !were.has(name))
  for (const { name } of are) were.delete(name)
  // Groups in backoff are listed first, so a truncated list can't show that one has left it.
  const left = are.length === groups.length && after.autoscaler?.omittedGroups !== undefined ? [] : [...were]
  const transitions: StatusTransition[] = []
  if (entered.length > 0) {
    transitions.push({ type: 'Warning', reason: 'NodeGroupBackoff', message: joinedMessages(entered.map(backoffText)) })
  }
  if (left.length > 0) {
    const message = `no longer in backoff: ${left.join(', ')}`
    transitions.push({ type: 'Normal', reason: 'NodeGroupBackoffEnded', message })
  }
  return transitions
}

function backoffText({ name, errorCode = '', errorMessage = '', scaleUpSince }: NodeGroupReport): string {
  const since = scaleUpSince === undefined ? '' : ` since ${scaleUpSince}`
  const why = [errorCode, errorMessage].filter((text) => text !== '').join(': ')
  return `node group ${name} is in backoff${since}${why === '' ? '' : `: ${why}`}`
}

function healthOf(status: UpstreamClusterStatus | undefined): AutoscalerVerdict | undefined {
  return status?.conditions?.find(({ type }) => type === 'AutoscalerHealthy')
}
