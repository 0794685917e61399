// Condition AutoDegraded and the Events about spec.degrade.auto, derived from status.degrade.auto, which the leader writes.

import type { StatusTransition } from '../../../kube/core/status-transition.ts'
import type { AutoDegradeStatus } from '../../api/upstream-cluster/auto-degrade.ts'
import type { Condition, UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'

type AutoDegradeVerdict = Pick<Condition, 'status' | 'reason' | 'message'>

export function autoDegradeVerdict(status: AutoDegradeStatus | undefined): AutoDegradeVerdict {
  if (status === undefined) return { status: 'Unknown', reason: 'Pending', message: 'nothing has been seen yet' }
  const { phase, reason, action } = status
  if (phase === 'Unknown') return { status: 'Unknown', reason: 'NodesUnknown', message: reason }
  if (phase !== 'Degraded') return { status: 'False', reason: phase, message: reason }
  return { status: 'True', reason: action ?? 'Entering', message: `${actionText(status)}: ${reason}` }
}

function actionText({ action, mode = '' }: AutoDegradeStatus): string {
  switch (action) {
    case 'Entered':
      return `${mode} was entered`
    case 'Shadow':
      return `${mode} would be entered, but auto is in shadow mode`
    case 'Stricter':
      return 'an equally strict or stricter mode is already in force'
    case 'Overruled':
      return `${mode} was entered, and a less strict mode was set since; it is not entered again until the cluster has been healthy once`
    default:
      return 'a stricter mode is about to be entered'
  }
}

const EVENTS: ReadonlyMap<string, string> = new Map([
  ['Entered', 'AutoDegradeEntered'],
  ['Shadow', 'AutoDegradeInShadow'],
  ['Stricter', 'AutoDegradeNotNeeded'],
  ['Overruled', 'AutoDegradeOverruled'],
  ['NodesUnknown', 'AutoDegradeUnknown'],
])

export function autoDegradeTransitions(
  before: UpstreamClusterStatus | undefined,
  after: UpstreamClusterStatus,
): readonly StatusTransition[] {
  const now = verdictIn(after)
  const was = verdictIn(before)
  if (now === undefined || now.reason === was?.reason) return []
  const event = EVENTS.get(now.reason)
  if (event !== undefined) return [{ type: 'Warning', reason: event, message: now.message }]
  const ended = was?.status === 'True' && now.status !== 'True'
  return ended ? [{ type: 'Normal', reason: 'AutoDegradeEnded', message: now.message }] : []
}

function verdictIn(status: UpstreamClusterStatus | undefined): AutoDegradeVerdict | undefined {
  return status?.conditions?.find(({ type }) => type === 'AutoDegraded')
}
