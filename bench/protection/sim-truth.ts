// What is true, whatever the processes believe: over-admissions and needless refusals.
//
// A pod is truly available while it is not terminating and has been ready for minReadySeconds of true time, whatever any clock
// says. An over-admission is a committed deletion of a pod that counts (by the criterion
// by which it was evaluated), after which fewer than minAvailable count, in all cells together, and before which it was not so.
//
// Losses of the data plane (a pod that becomes unready by itself) cannot be known before they are seen. A deletion is
// therefore not blamed for pods that became unready after the version of their cell that the aggregation in force showed when
// the deletion was admitted: they count as though they were still available, whether or not they were deleted since. Nor is it
// blamed for a pod that did not count when it was admitted, when such losses have made it one that is needed.

import type { PodFacts } from '../../src/protection/api/protection.ts'
import type { SimPod, TrueCell } from './sim-cell.ts'
import type { CoreStore, SeenVersions } from './sim-core.ts'
import type { SimQueue } from './sim-queue.ts'
import type { Scenario, SimProtector } from './sim-scenario.ts'

/** One admitted deletion, as the truth follows it. */
export interface Admitted {
  readonly pod: SimPod
  /** By protector key: what its aggregation showed when this was admitted. */
  readonly seen: ReadonlyMap<string, SeenVersions>
  /** By which protectors the pod counted when this was admitted. */
  readonly counted: ReadonlySet<string>
  outcome: 'flying' | 'committed' | 'refused'
}

/** Why a refusal was needless. */
export type Needless =
  /** maxConcurrentLag was reached. */
  | 'lag limit'
  /** Reservations of deletions that did not come true. */
  | 'failed deletions'
  /** Pods that became available and are not counted yet. */
  | 'not counted yet'
  /** No answer in time, or an old copy of the protector. */
  | 'old or no answer'

interface Refusal {
  /** What the protectors in force said at that moment. */
  readonly believed: readonly { readonly estimated: number; readonly reserved: readonly (SimPod | undefined)[] }[]
  readonly limited: boolean
  readonly evaluations: readonly {
    readonly minAvailable: number
    readonly count: number
    readonly counted: boolean
    readonly flying: readonly Admitted[]
  }[]
}

export class Truth {
  asked = 0
  admitted = 0
  refused = 0
  overAdmissions = 0
  readonly explanations: string[] = []
  /** The protectors for which a pod counted when it was deleted. */
  private readonly deletedCounting = new Map<SimPod, ReadonlySet<string>>()
  private readonly flying = new Set<Admitted>()
  private readonly refusals: Refusal[] = []
  private readonly scenario: Scenario
  private readonly cells: readonly TrueCell[]
  private readonly queue: SimQueue
  private readonly core: CoreStore

  constructor(scenario: Scenario, cells: readonly TrueCell[], queue: SimQueue, core: CoreStore) {
    this.core = core
    this.scenario = scenario
    this.cells = cells
    this.queue = queue
  }

  admit(pod: SimPod, seen: ReadonlyMap<string, SeenVersions>): Admitted {
    this.admitted++
    const protectors = this.protectorsOf(pod)
    const counted = protectors.filter((protector) => this.isCounted(protector, pod)).map(({ key }) => key)
    const shown = new Map(protectors.map(({ key }) => [key, seen.get(key) ?? this.core.seen(key)]))
    const admitted: Admitted = { pod, seen: shown, counted: new Set(counted), outcome: 'flying' }
    this.flying.add(admitted)
    return admitted
  }

  /** Never reached upstream, or was refused there. */
  abandon(admitted: Admitted): void {
    if (admitted.outcome !== 'flying') return
    admitted.outcome = 'refused'
    this.flying.delete(admitted)
  }

  refuse(pod: SimPod, limited: boolean): void {
    this.refused++
    const believed = this.protectorsOf(pod).map(({ key }) => this.believed(key))
    const evaluations = this.protectorsOf(pod).map((protector) => ({
      minAvailable: protector.minAvailable,
      count: this.count(protector),
      counted: this.counts(protector, pod),
      flying: [...this.flying].filter(({ pod: other }) => other !== pod && this.isCounted(protector, other)),
    }))
    this.refusals.push({ evaluations, believed, limited })
  }

  /** Right before upstream commits it. */
  commit(admitted: Admitted): void {
    const { pod, seen } = admitted
    this.flying.delete(admitted)
    if (pod.gone || pod.facts.terminating) {
      admitted.outcome = 'refused'
      return
    }
    admitted.outcome = 'committed'
    const protectors = this.protectorsOf(pod)
    const counting = protectors.filter((protector) => this.isCounted(protector, pod)).map(({ key }) => key)
    this.deletedCounting.set(pod, new Set(counting))
    for (const protector of protectors) {
      if (!this.isCounted(protector, pod)) continue
      // It came to count while its deletion was on its way, and while pods were lost: no verdict has relied on it.
      if (this.scenario.flapping && !admitted.counted.has(protector.key)) continue
      const count = this.count(protector)
      const excused = this.scenario.flapping ? this.lostUnseen(protector, seen.get(protector.key)) : 0
      if (count - 1 + excused >= protector.minAvailable || count + excused < protector.minAvailable) continue
      this.overAdmissions++
      this.explanations.push(
        `${(this.queue.now / 1_000).toFixed(3)} s: ${pod.facts.name} of ${protector.key}: ${count} before, ${excused} lost and not seen, ${protector.minAvailable} required`,
      )
      return
    }
  }

  /** At the end of the run, when it is known which deletions came true. */
  needlessRefusals(): Map<Needless, number> {
    const reasons = new Map<Needless, number>()
    for (const refusal of this.refusals) {
      const allowed = refusal.evaluations.every(
        (evaluation) =>
          !evaluation.counted ||
          evaluation.count - evaluation.flying.filter(({ outcome }) => outcome === 'committed').length >
            evaluation.minAvailable,
      )
      if (!allowed) continue
      const reason = reasonOf(refusal)
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
    }
    return reasons
  }

  private believed(key: string): Refusal['believed'][number] {
    const status = this.core.get(key)?.status
    const reserved: (SimPod | undefined)[] = []
    for (const { cellID, admissionHistory } of status?.cells ?? []) {
      const cell = this.cells.find(({ id }) => id === cellID)
      for (const { podUID, podUIDs, counter } of admissionHistory?.buckets ?? []) {
        const uids = podUID === undefined ? (podUIDs ?? []) : [podUID]
        for (let i = 0; i < (counter ?? 1); i++) reserved.push(cell?.byUid.get(uids[i] ?? ''))
      }
    }
    return { estimated: status?.summary.estimatedAvailableReplicas ?? 0, reserved }
  }

  count(protector: SimProtector): number {
    let count = 0
    for (const cell of this.cells) for (const pod of cell.pods) if (this.isCounted(protector, pod)) count++
    return count
  }

  private isCounted(protector: SimProtector, pod: SimPod): boolean {
    return !pod.gone && selectedBy(protector, pod.facts) && this.counts(protector, pod)
  }

  private counts(protector: SimProtector, { facts, readyAtMs }: SimPod): boolean {
    if (facts.terminating) return false
    const { criterion } = this.scenario
    if (criterion === 'Scheduled') return facts.scheduled
    if (criterion === 'Running') return facts.running
    if (criterion === 'Ready' || !facts.ready) return facts.ready
    return this.queue.now - readyAtMs >= protector.minReadySeconds * 1_000
  }

  private lostUnseen(protector: SimProtector, seen: SeenVersions | undefined): number {
    let count = 0
    for (const cell of this.cells) {
      const version = seen?.get(cell.id) ?? 0
      for (const pod of cell.pods) {
        if (pod.unreadyVersion <= version || !selectedBy(protector, pod.facts)) continue
        const taken = this.deletedCounting.get(pod)?.has(protector.key) === true
        if (!(this.isCounted(protector, pod) || taken)) count++
      }
    }
    return count
  }

  private protectorsOf({ facts }: SimPod): readonly SimProtector[] {
    return this.scenario.protectors.filter((protector) => selectedBy(protector, facts))
  }
}

function selectedBy({ selects }: SimProtector, { labels }: PodFacts): boolean {
  return selects === 'all' || selects === labels['app']
}

function reasonOf({ evaluations, believed, limited }: Refusal): Needless {
  if (limited) return 'lag limit'
  let reason: Needless = 'old or no answer'
  evaluations.forEach(({ minAvailable }, index) => {
    const { estimated, reserved } = believed[index] ?? { estimated: 0, reserved: [] }
    if (estimated > minAvailable) return
    const failed = reserved.filter((pod) => pod?.deleted === false).length
    if (estimated + failed > minAvailable) reason = reason === 'not counted yet' ? reason : 'failed deletions'
    else reason = 'not counted yet'
  })
  return reason
}
