// Why a pod goes or stays, in words.

import { formatDuration } from '../../text/duration.ts'
import { ageBucket, type ComparisonWindow, firstChangeMs } from './age-bucket.ts'
import { comparedTimes } from './compare-pods.ts'
import type { Decision, PodVerdict } from './deletion-rank.ts'
import type { ScalePod } from './scale-pod.ts'

export function decisionText({ pod, rank, decision }: PodVerdict, window: ComparisonWindow): string {
  const { fromMs: nowMs } = window
  const { rule, against } = decision
  if (against === undefined) return withoutComparison(rule)
  const { pod: other, rank: otherRank } = against
  switch (rule) {
    case 'Unassigned':
      return pod.nodeName === '' ? 'not assigned to a node' : 'assigned to a node'
    case 'Phase':
      return `phase ${pod.phase || 'not set'}, ${other.name}: ${other.phase || 'not set'}`
    case 'NotReady':
      return pod.ready ? 'ready' : 'not ready'
    case 'DeletionCost':
      return `deletion cost ${pod.deletionCost}, ${other.name}: ${other.deletionCost}`
    case 'DoubledUp':
      return `pods of its owner on its node: ${rank}, ${other.name}: ${otherRank}`
    case 'ReadyTime':
      return ageText('ready for', pod.readySinceMs, other.readySinceMs, other.name, nowMs)
    case 'Restarts':
      return restartsText(pod, other)
    case 'CreationTime':
      return ageText('age', pod.createdMs, other.createdMs, other.name, nowMs)
    case 'AgeBoundary':
      return boundaryText(pod, other, window)
    case 'SiblingDeletions':
      return `${other.name} may go first: another ReplicaSet deletes pods on these nodes at the same time`
    case 'Policy':
      return `a ScaleDownPolicy chooses between it and ${other.name}`
    case 'Cycle':
      return `${other.name} comes before it, and others behind it before ${other.name}: the rules make a circle`
    default:
      return `equal to ${other.name} by all rules`
  }
}

function withoutComparison(rule: Decision['rule']): string {
  if (rule === 'Nothing') return 'none is too many'
  return rule === 'LaterBatch' ? 'after the first 500 the rest is compared again' : 'all of them go'
}

function restartsText(pod: ScalePod, other: ScalePod): string {
  if (pod.restarts !== other.restarts) return `restarts: ${pod.restarts}, ${other.name}: ${other.restarts}`
  return `restarts of a sidecar: ${pod.sidecarRestarts}, ${other.name}: ${other.sidecarRestarts}`
}

/** Ages are compared by powers of two of their nanoseconds, and UIDs within one. */
function ageText(what: string, own: number, other: number, name: string, nowMs: number): string {
  const text = (time: number): string => {
    return time === 0 ? 'unknown' : formatDuration(Math.max(0, Math.floor((nowMs - time) / 1000)) * 1000)
  }
  const bucket = (time: number): number => ageBucket((nowMs - time) * 1e6)
  const byUid = own !== 0 && other !== 0 && bucket(own) === bucket(other)
  return `${what} ${text(own)}, ${name}: ${text(other)}${byUid ? ' (about the same, so the UID decides)' : ''}`
}

/** Two ages that change places: from when on. */
function boundaryText(pod: ScalePod, other: ScalePod, window: ComparisonWindow): string {
  const [a = 0, b = 0] = comparedTimes(pod, other) ?? []
  const changeMs = firstChangeMs(Math.max(a, b), Math.min(a, b), window)
  const when = changeMs === undefined ? 'within the minute' : `in ${secondsText(changeMs - window.fromMs)}`
  return `its age and that of ${other.name} change places ${when}`
}

/** Whole seconds, at least one. */
export function secondsText(ms: number): string {
  return formatDuration(Math.max(1, Math.floor(ms / 1000)) * 1000)
}
