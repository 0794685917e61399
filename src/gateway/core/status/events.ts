// Events of an UpstreamCluster: transitions between two statuses.

import type { StatusTransition } from '../../../kube/core/status-transition.ts'
import type { UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'
import { autoDegradeTransitions } from './auto-degrade-verdict.ts'
import { autoscalerTransitions } from './autoscaler-health.ts'
import { conditionOf } from './cluster-status.ts'

/** Transitions that an operator should know of; none if nothing changed. */
export function statusTransitions(
  before: UpstreamClusterStatus | undefined,
  after: UpstreamClusterStatus,
): StatusTransition[] {
  const transitions: StatusTransition[] = []
  const tell = (type: StatusTransition['type'], reason: string, message: string | undefined): void => {
    transitions.push({ type, reason, message: message ?? '' })
  }
  const changed = (type: string): boolean => statusOf(before, type) !== statusOf(after, type)
  const ready = conditionOf(after, 'Ready')
  const readyBefore = conditionOf(before, 'Ready')
  const another = ready?.observedGeneration !== readyBefore?.observedGeneration
  if (ready?.reason === 'Invalid') {
    if (another || readyBefore?.reason !== 'Invalid') tell('Warning', 'Invalid', ready.message)
  } else if (after.observedGeneration !== undefined && isNewlyApplied(before, after)) {
    tell('Normal', 'Applied', `generation ${after.observedGeneration} is in force`)
  }
  if (changed('EndpointsHealthy')) {
    const now = conditionOf(after, 'EndpointsHealthy')
    if (now?.status === 'False') tell('Warning', 'EndpointsUnhealthy', now.message)
    if (now?.status === 'True') tell('Normal', 'EndpointsHealthy', now.message)
  }
  if (changed('CredentialsValid')) {
    const now = conditionOf(after, 'CredentialsValid')
    if (now?.status === 'False') tell('Warning', 'CredentialsInvalid', now.message)
    else if (now?.reason === 'Unreachable') tell('Warning', 'CredentialsUnknown', now.message)
    else if (now?.status === 'True' && before !== undefined && known(before))
      tell('Normal', 'CredentialsValid', now?.message)
  }
  const degraded = conditionOf(after, 'Degraded')
  if (degraded?.status === 'True' && degraded.reason !== conditionOf(before, 'Degraded')?.reason) {
    tell('Warning', 'Degraded', degraded.message)
  } else if (degraded?.reason === 'Shadow' && conditionOf(before, 'Degraded')?.reason !== 'Shadow') {
    tell('Warning', 'DegradeInShadow', degraded.message)
  } else if (changed('Degraded') && statusOf(before, 'Degraded') === 'True') {
    tell('Normal', degraded?.reason === 'Expired' ? 'DegradeExpired' : 'DegradeEnded', degraded?.message)
  }
  const credentials = conditionOf(after, 'CredentialsValid')
  if (credentials?.reason === 'EndsSoon' && conditionOf(before, 'CredentialsValid')?.reason !== 'EndsSoon') {
    tell('Warning', 'CertificateEndsSoon', credentials.message)
  }
  const clients = conditionOf(after, 'ClientCertificatesAccepted')
  if (clients?.status === 'False' && changed('ClientCertificatesAccepted')) {
    tell('Warning', 'ClientCertificatesNotAccepted', clients.message)
  } else if (clients?.status === 'True' && statusOf(before, 'ClientCertificatesAccepted') === 'False') {
    tell('Normal', 'ClientCertificatesAccepted', clients.message)
  }
  if (changed('ServersResolved')) {
    const servers = conditionOf(after, 'ServersResolved')
    if (servers?.status === 'False') tell('Warning', 'ServersNotResolved', servers.message)
    else if (statusOf(before, 'ServersResolved') === 'False') tell('Normal', 'ServersResolved', servers?.message)
  }
  if (changed('IssuersReachable')) {
    const issuers = conditionOf(after, 'IssuersReachable')
    if (issuers?.status === 'False') tell('Warning', 'IssuersNotReachable', issuers.message)
    else if (statusOf(before, 'IssuersReachable') === 'False') tell('Normal', 'IssuersReachable', issuers?.message)
  }
  if (changed('LimitsShared')) {
    const limits = conditionOf(after, 'LimitsShared')
    if (limits?.status === 'False') tell('Warning', 'LimitsNotShared', limits.message)
    else if (statusOf(before, 'LimitsShared') === 'False') tell('Normal', 'LimitsShared', limits?.message)
  }
  const protection = conditionOf(after, 'PodsProtected')
  const protectionBefore = conditionOf(before, 'PodsProtected')
  if (protection?.status === 'False' && protection.reason !== protectionBefore?.reason) {
    tell('Warning', protection.reason === 'Shadow' ? 'PodProtectionInShadow' : 'PodsNotProtected', protection.message)
  } else if (protection?.status === 'True' && protectionBefore?.status === 'False') {
    tell('Normal', 'PodsProtected', protection.message)
  }
  const cache = conditionOf(after, 'ReadCacheReady')
  const cacheBefore = conditionOf(before, 'ReadCacheReady')
  if (cache?.status === 'False' && cache.reason !== cacheBefore?.reason)
    tell('Warning', 'ReadCacheNotReady', cache.message)
  else if (cache?.status === 'True' && cacheBefore?.status === 'False') tell('Normal', 'ReadCacheReady', cache.message)
  const members = conditionOf(after, 'MembersReady')
  const membersBefore = conditionOf(before, 'MembersReady')
  if (members?.status === 'False' && members.reason !== membersBefore?.reason)
    tell('Warning', 'MembersNotReady', members.message)
  else if (members?.status === 'True' && membersBefore?.status === 'False')
    tell('Normal', 'MembersReady', members.message)
  return [...transitions, ...autoscalerTransitions(before, after), ...autoDegradeTransitions(before, after)]
}

/** Whether the credential was reported as invalid or unverified before: only then is its recovery an Event. */
function known(before: UpstreamClusterStatus): boolean {
  const condition = conditionOf(before, 'CredentialsValid')
  return condition?.status === 'False' || condition?.reason === 'Unreachable'
}

/** A generation is applied once; one that was invalid and became valid through a Secret is applied then. */
function isNewlyApplied(before: UpstreamClusterStatus | undefined, after: UpstreamClusterStatus): boolean {
  return before?.observedGeneration !== after.observedGeneration || conditionOf(before, 'Ready')?.reason === 'Invalid'
}

function statusOf(status: UpstreamClusterStatus | undefined, type: string): string {
  return conditionOf(status, type)?.status ?? ''
}
