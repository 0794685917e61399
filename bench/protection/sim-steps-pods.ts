// The pods of a small world, and their cells as the API has them.

import type { PodFacts } from '../../src/protection/api/protection.ts'

export interface StepsPod {
  facts: PodFacts
  readonly cell: number
  gone: boolean
  unreadyVersion: number
  /** Deleted while it was available. */
  taken: boolean
}

export interface StepsEvent {
  readonly version: number
  readonly gone: boolean
  readonly facts: PodFacts
}

/** `weight`: how often it is offered, against others. */
export type Step = readonly [name: string, act: () => void, weight: number]

const START_MS = Date.UTC(2026, 0, 2)

export abstract class StepsPods {
  /** Wall clock, ms. */
  protected now: number = START_MS
  protected readonly versions: [number, number] = [100, 100]
  protected readonly events: readonly [StepsEvent[], StepsEvent[]] = [[], []]
  protected readonly pods: StepsPod[] = []

  protected create(cell: 0 | 1, ready: boolean): void {
    const name = `p${this.pods.length}`
    const facts: PodFacts = {
      namespace: 'default',
      name,
      uid: name,
      resourceVersion: '',
      labels: {},
      forceDelete: false,
      criterion: 'Available',
      terminating: false,
      scheduled: true,
      running: true,
      ready,
      readySinceMs: ready ? this.now : 0,
      startedMs: 0,
      createdMs: 0,
      readyWrittenMs: 0,
    }
    const pod: StepsPod = { facts, cell, gone: false, unreadyVersion: 0, taken: false }
    this.pods.push(pod)
    this.change(pod, {})
  }

  protected change(pod: StepsPod, change: Partial<PodFacts>): void {
    const version = this.nextVersion(pod.cell)
    pod.facts = { ...pod.facts, ...change, resourceVersion: String(version) }
    this.eventsOf(pod.cell).push({ version, gone: false, facts: pod.facts })
  }

  protected nextVersion(cell: number): number {
    const version = (this.versions[cell] ?? 0) + 2
    this.versions[cell === 0 ? 0 : 1] = version
    return version
  }

  protected eventsOf(cell: number): StepsEvent[] {
    return this.events[cell === 0 ? 0 : 1]
  }

  protected flip(pod: StepsPod): void {
    const ready = !pod.facts.ready
    this.change(pod, { ready, readySinceMs: ready ? this.now : 0 })
    if (!ready) pod.unreadyVersion = Number(pod.facts.resourceVersion)
  }

  protected remove(pod: StepsPod): void {
    pod.gone = true
    this.eventsOf(pod.cell).push({ version: this.nextVersion(pod.cell), gone: true, facts: pod.facts })
  }

  protected selected(protector: number): StepsPod[] {
    // The second protector has the pods of the first cell only.
    return this.pods.filter(({ cell }) => protector === 0 || cell === 0)
  }

  protected available(protector: number): StepsPod[] {
    return this.selected(protector).filter(({ gone, facts }) => !(gone || facts.terminating) && facts.ready)
  }
}
