// How one deletion is evaluated, in words: each protector of the pod with its numbers, then the answer.

import type { ProtectionRequest, ProtectionVerdict } from '../../api/ports/protection.ts'
import { admitted, type Finding, findingsOf, verdictOf } from '../../core/protection/ledger/verdicts.ts'
import { freePass } from '../../core/protection/quota/evaluate.ts'
import type { ProtectionSettings } from '../../core/protection/requests/protection-settings.ts'
import type { LiveProtector } from '../../state/protectors.ts'

export interface DeletionExplanation {
  readonly lines: readonly string[]
  readonly passes: boolean
}

/** @param protectors those that select the pod, sorted */
export function explainDeletion(
  request: ProtectionRequest,
  protectors: readonly LiveProtector[],
  settings: ProtectionSettings,
  nowMs: number,
): DeletionExplanation {
  const free = freePass(request)
  const findings = protectors.flatMap((live) => findingsOf([request], live, settings, nowMs))
  const lines = protectors.flatMap((live, at) => {
    const finding = findings[at]
    return finding === undefined ? [] : protectorLines(request, live, finding, free !== undefined)
  })
  const verdict = free === undefined || protectors.length === 0 ? verdictOf(request, findings) : admitted(free)
  const passes = verdict.admitted || verdict.overridden !== ''
  return { lines: [...lines, verdictText(verdict)], passes }
}

const WORDS: Readonly<Record<Finding['result'], string>> = {
  Ok: 'lets it pass',
  AlreadyHasBucket: 'lets it pass, as before',
  AlreadyUnhealthy: 'lets it pass: the pod does not meet its own criterion',
  Recorded: 'lets it pass: the pod has not been ready for minReadySeconds and is not counted',
  NoProtector: 'no longer exists',
  Denied: 'refuses: too few would be left',
  Retry: 'refuses for now: earlier deletions have not been seen to happen yet',
}

function protectorLines(
  { cell }: ProtectionRequest,
  { key, protector, fault }: LiveProtector,
  { required, count, lag, result }: Finding,
  free: boolean,
): string[] {
  const says = free ? 'is not asked' : WORDS[result]
  const lines = [`PodProtector ${key}: ${required} required, ${count} counted, ${lag} being deleted: ${says}`]
  if (fault !== '') lines.push(`  ${fault}`)
  const status = protector.status?.cells.find(({ cellID }) => cellID === cell)
  if (status?.aggregation === undefined) lines.push(`  nobody has counted its pods in cell ${cell}`)
  else if (status.stale === true) lines.push(`  cell ${cell} is silent: its pods do not count`)
  return lines
}

const PASSES: Readonly<Record<string, string>> = {
  Unmatched: 'no PodProtector selects the pod',
  AlreadyTerminating: 'the pod is already being deleted',
  AlreadyAdmitted: 'it was admitted before',
  AlreadyUnready: 'the pod is not ready, so nothing is lost with it',
  StillUnavailable: 'the pod does not count as available yet',
  AlreadyUnhealthy: 'the pod does not meet its own criterion',
  AdmittedAll: 'enough pods are left',
}

function verdictText({ status, overridden, message, retryAfterSeconds }: ProtectionVerdict): string {
  const passes = PASSES[status]
  if (passes !== undefined) return `a deletion now passes: ${passes}`
  if (overridden === 'shadow')
    return `a deletion now passes, because protection is in dry run; it would be refused: ${message}`
  if (overridden !== '') return `a deletion now passes, because of ${overridden}; it would be refused: ${message}`
  const again = retryAfterSeconds > 0 ? '; it may pass in a moment' : ''
  return `a deletion now is refused: ${message}${again}`
}
