// Evaluates the deletions of a scale-down against PodProtectors: the rules for single deletions, applied to all of them at once, with the
// numbers that the protectors will have after the change.

import type { ProtectionSettings } from '../../../process/api/protection-settings.ts'
import type {
  LeavingPods,
  PodFacts,
  ProtectionRequest,
  ProtectorAnswer,
  ScaleDownQuestion,
} from '../../api/protection.ts'
import { minAvailableAfter } from '../generator/derive-protector.ts'
import { isStale, limitsOf, readCells } from '../history/cell-history.ts'
import { type Finding, findingsOf, type KnownProtector, refuses } from '../ledger/verdicts.ts'
import { freePass } from '../quota/quota.ts'

/** Access to the known PodProtectors. */
interface ProtectorLookup {
  matching(namespace: string, labels: Readonly<Record<string, string>>): readonly KnownProtector[]
}

type Question = Omit<ScaleDownQuestion, 'timeoutMs'>

/** Linear in the number of pods and of protectors that select them. */
export function askProtectors(
  question: Question,
  table: ProtectorLookup,
  settings: ProtectionSettings,
  nowMs: number,
): readonly ProtectorAnswer[] {
  const protectedBy = new Map<string, { readonly known: KnownProtector; readonly uids: Set<string> }>()
  for (const { certain, possible } of question.sets) {
    for (const { namespace, labels, uid } of [...certain, ...possible.pods]) {
      for (const known of table.matching(namespace, labels)) {
        const { key } = known
        const entry = protectedBy.get(key) ?? { known, uids: new Set() }
        entry.uids.add(uid)
        protectedBy.set(key, entry)
      }
    }
  }
  const ordered = [...protectedBy.values()].sort((a, b) => (a.known.key < b.known.key ? -1 : 1))
  return ordered.map(({ known, uids }) => answerOf(question, known, uids, settings, nowMs))
}

function answerOf(
  question: Question,
  known: KnownProtector,
  uids: ReadonlySet<string>,
  settings: ProtectionSettings,
  nowMs: number,
): ProtectorAnswer {
  const { workload, kind, replicas, sets, cell } = question
  const { protector, key } = known
  const requiredAfter = minAvailableAfter(protector, workload, kind, replicas)
  const after = { key, protector: { ...protector, spec: { ...protector.spec, minAvailable: requiredAfter } } }
  const ask = (costly: boolean): Tally => {
    const deleted = sets.flatMap((set) => leaving(set, uids, costly))
    return tallyOf(after, deleted, cell, settings, nowMs)
  }
  const [most, least] = [ask(true), ask(false)]
  const first = most.findings[0] ?? least.findings[0]
  return {
    protector: key,
    required: protector.spec.minAvailable,
    requiredAfter,
    counted: first?.count ?? protector.status?.summary?.aggregatedAvailableReplicas ?? 0,
    beingDeleted: first?.lag ?? 0,
    deletions: most.deletions,
    refused: { least: Math.min(least.refused, most.refused), most: Math.max(least.refused, most.refused) },
    delayed: most.delayed,
    stale: isUncounted(known, cell, settings, nowMs),
  }
}

function isUncounted(
  { protector }: KnownProtector,
  cell: string,
  settings: ProtectionSettings,
  nowMs: number,
): boolean {
  const nowMicros = nowMs * 1000
  const counted = readCells(protector.status?.cells, nowMicros).get(cell)
  if (counted?.aggregation === undefined) return true
  return isStale(counted, limitsOf(protector, settings), nowMicros)
}

/**
 * The leaving pods that one protector protects. Where it is open which ones go: as many as possible, those first that cost its budget most;
 * or as few as possible, those that cost least.
 */
function leaving({ certain, possible }: LeavingPods, uids: ReadonlySet<string>, costly: boolean): readonly PodFacts[] {
  const { count, among, pods } = possible
  const isTheirs = ({ uid }: PodFacts): boolean => uids.has(uid)
  const cost = ({ ready, forceDelete }: PodFacts): number => (ready && !forceDelete ? 1 : 0)
  const open = pods.filter(isTheirs).sort((a, b) => (costly ? cost(b) - cost(a) : cost(a) - cost(b)))
  const others = costly ? 0 : among - open.length
  return [...certain.filter(isTheirs), ...open.slice(0, Math.max(0, count - others))]
}

interface Tally {
  readonly deletions: number
  readonly findings: readonly Finding[]
  readonly refused: number
  readonly delayed: number
}

function tallyOf(
  known: KnownProtector,
  pods: readonly PodFacts[],
  cell: string,
  settings: ProtectionSettings,
  nowMs: number,
): Tally {
  const requests = pods.map((pod): ProtectionRequest => {
    const how = { cause: 'DeletePod', via: 'filter', criterion: undefined, user: '', dryRun: true } as const
    return { cell, pod, ...how, shadow: false, timeoutMs: 0 }
  })
  // Deletions that can't be refused take nothing, nor do those that are only recorded.
  const asking = requests.filter((request) => freePass(request) === undefined)
  const findings = findingsOf(asking, known, settings, nowMs)
  const refusals = findings.filter((finding, at) => refuses(finding) && asking[at]?.pod.forceDelete !== true)
  const delayed = refusals.filter(({ result }) => result === 'Retry').length
  return { deletions: pods.length, findings, refused: refusals.length - delayed, delayed }
}
