// A small world in which nothing happens by itself: every step of every party is one that a test may choose, so that all
// interleavings are within reach. The rules are those of src/protection/core; `mutation` breaks one of them.
//
// After each step two things must hold, and `fault` says which one does not.
// (1) No committed deletion takes the number of available pods of a protector from minAvailable or more to less. Pods that
//     became unready by themselves, at a version of their cell after the one that the aggregation in force showed when the
//     deletion was admitted, count as though they were available: no process can have known it.
// (2) No count is lost: what is estimated is at most the number of pods that were counted, without those that are deleted and
//     those whose reserved deletion is on its way.
// minReadySeconds is 0 and clocks agree: time and clocks are sim.ts' part.

import { TIMEOUT_MS } from './sim-steps-aggregators.ts'
import { type StepsDeletion, StepsLedger } from './sim-steps-ledger.ts'
import type { Step } from './sim-steps-pods.ts'

/** From the moment at which a deletion is evaluated, its whole way through ledger and upstream takes less, or it is cancelled. */
const UPSTREAM_MS = 110_000
const MAX_PODS = 8
const MAX_DELETIONS = 6

export class StepsWorld extends StepsLedger {
  fault = ''
  readonly log: string[] = []

  /** What may happen next. */
  steps(): Step[] {
    const steps: Step[] = []
    this.podSteps(steps)
    for (const cell of [0, 1] as const) this.aggregatorSteps(cell, steps)
    for (const deletion of this.deletions) this.deletionSteps(deletion, steps)
    this.replicaSteps(steps)
    for (const seconds of [1, 45, 100]) steps.push([`${seconds} s pass`, () => this.pass(seconds * 1_000), 1])
    return steps
  }

  private podSteps(steps: Step[]): void {
    const living = this.pods.filter(({ gone, facts }) => !(gone || facts.terminating))
    for (const pod of living) {
      const { name, ready } = pod.facts
      for (const via of ['filter', 'webhook'] as const) {
        if (this.deletions.length >= MAX_DELETIONS) break
        const replica = (this.deletions.length + pod.cell) % 2
        steps.push([`${via} deletion of ${name} begins at ${replica}`, () => this.begin(pod, via, replica), 1])
      }
      steps.push([`${name} becomes ${ready ? 'unready' : 'ready'}`, () => this.flip(pod), ready ? 0.2 : 3])
    }
    for (const pod of this.pods) {
      if (pod.facts.terminating && !pod.gone) steps.push([`${pod.facts.name} ends`, () => this.remove(pod), 1])
    }
    for (const cell of [0, 1] as const) {
      if (living.length < MAX_PODS) {
        steps.push([`new pod in ${cell}`, () => this.create(cell, false), 0.5])
        steps.push([`new pod in ${cell}, ready before anybody looks`, () => this.create(cell, true), 0.7])
      }
    }
  }

  run([name, act]: Step): void {
    this.log.push(name)
    act()
    this.checkCounts()
  }

  /** Everything is delivered, what is on its way fails, and time passes: what is left must be the truth. */
  settle(): void {
    for (const deletion of this.deletions) this.end(deletion)
    this.late = []
    for (let round = 0; round < 3; round++) {
      this.pass(2 * TIMEOUT_MS)
      for (const cell of [0, 1] as const) {
        this.relist(cell)
        this.askStreamTime(cell)
        this.stores.forEach((_, protector) => {
          this.aggregators[cell].caches[protector] = this.object(protector)
          this.compute(cell, protector)
          this.writeAggregation(cell)
        })
      }
    }
    this.stores.forEach(({ object }, protector) => {
      const left = object.status?.cells.flatMap(({ admissionHistory }) => admissionHistory?.buckets ?? []) ?? []
      const estimated = object.status?.summary.estimatedAvailableReplicas
      const available = this.available(protector).length
      if (left.length > 0 || estimated !== available) {
        this.fault ||= `at rest ${protector} has ${left.length} buckets, ${estimated} estimated, ${available} available`
      }
    })
  }

  private pass(ms: number): void {
    this.now += ms
    for (const deletion of this.deletions) {
      if (this.now - deletion.askedAt > UPSTREAM_MS) this.end(deletion)
    }
  }

  protected override checkDeletion({ pod, shown }: StepsDeletion): void {
    if (!pod.facts.ready) return
    for (const protector of this.protectorsOf(pod)) {
      const store = this.stores[protector]
      if (store === undefined) continue
      const min = store.object.spec.minAvailable
      const seen = shown.get(protector) ?? store.shown
      const lost = this.selected(protector).filter(
        ({ cell, unreadyVersion, facts, taken }) =>
          unreadyVersion > seen[cell === 0 ? 0 : 1].version && !taken && !(facts.ready && !facts.terminating),
      ).length
      const before = this.available(protector).length + lost
      if (before >= min && before - 1 < min) {
        this.fault ||= `${pod.facts.name} was deleted, ${before - 1} of ${min} are left for ${protector}`
      }
    }
  }

  private checkCounts(): void {
    this.stores.forEach(({ object, shown }, protector) => {
      const doomed = new Set(
        this.pods.filter(({ gone, facts }) => gone || facts.terminating).map(({ facts }) => facts.uid),
      )
      for (const { reserved, facts } of this.deletions) if (reserved) doomed.add(facts.uid)
      const left = [...shown[0].uids, ...shown[1].uids].filter((uid) => !doomed.has(uid)).length
      const estimated = object.status?.summary.estimatedAvailableReplicas ?? 0
      if (this.countable(protector) && estimated > left) {
        this.fault ||= `${protector} estimates ${estimated}, and ${left} of what was counted are not being deleted`
      }
    })
  }

  /** A pod that passed because it was not ready may be counted until its note is written. */
  private countable(protector: number): boolean {
    const unready = this.pods.some(({ gone, facts, taken }) => (gone || facts.terminating) && !taken)
    return !unready && !this.late.some((late) => late.protector === protector && late.operation.type === 'record')
  }
}
