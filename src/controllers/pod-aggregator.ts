// Counts the pods of one cell for the statuses of PodProtectors, and takes deletions that have been seen to happen out of their
// admission histories. Only one replica does so at a time; the others hold nothing of it.

import type { CompiledAggregation } from '../core/compiled-cluster.ts'
import type { PodAggregatorDescription, PodAggregatorParts } from './pod-aggregator-parts.ts'
import { AggregatorTerm } from './pod-aggregator-term.ts'
import { UpdateTrigger } from './update-trigger.ts'

export type { PodAggregatorDescription, PodAggregatorParts }

export interface PodAggregator {
  describe(): PodAggregatorDescription
  /** To be called when leadership was won or lost, or the cell's spec changed; it is noticed within a second without. */
  leaderChanged(): void
  /** Nothing is written after it. */
  stop(): Promise<void>
}

/** Noticed so late when nobody says it. */
const BEAT_MS = 1_000

/** Counts from now on, while it is leader. */
export function startPodAggregator(parts: PodAggregatorParts): PodAggregator {
  return new Aggregator(parts)
}

class Aggregator implements PodAggregator {
  readonly #parts: PodAggregatorParts
  readonly #beating: NodeJS.Timeout
  /** What it does as leader, and what that was made for. */
  #term: { readonly made: string; readonly work: AggregatorTerm } | undefined
  #trigger: { readonly made: string; readonly work: UpdateTrigger } | undefined
  readonly #ending = new Set<Promise<void>>()
  #stopped = false

  constructor(parts: PodAggregatorParts) {
    this.#parts = parts
    this.#beating = setInterval(() => this.leaderChanged(), BEAT_MS)
    this.#beating.unref()
    this.leaderChanged()
  }

  describe(): PodAggregatorDescription {
    return this.#term?.work.describe() ?? { ...IDLE, cell: this.#parts.cell }
  }

  leaderChanged(): void {
    const protection = this.#stopped || !this.#parts.isLeader() ? undefined : this.#parts.protection()
    const aggregation = protection?.aggregation.enabled === true ? protection.aggregation : undefined
    this.#settleTerm(aggregation)
    this.#settleTrigger(aggregation)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearInterval(this.#beating)
    this.leaderChanged()
    await Promise.all(this.#ending)
  }

  #settleTerm(aggregation: CompiledAggregation | undefined): void {
    const made = madeFor(aggregation && [aggregation.podSelector, aggregation.syncTime, aggregation.syncTimeAnnotation])
    if (this.#term?.made === made) return
    this.#end(this.#term?.work)
    this.#term = undefined
    if (aggregation === undefined) return
    try {
      this.#term = { made, work: new AggregatorTerm(this.#parts, aggregation) }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      this.#parts.log.error('the pods of a cell cannot be counted', { cell: this.#parts.cell, why })
    }
  }

  #settleTrigger(aggregation: CompiledAggregation | undefined): void {
    const { podSelector, updateTrigger } = aggregation ?? {}
    const made = madeFor(updateTrigger && [podSelector, updateTrigger])
    if (this.#trigger?.made === made || (this.#trigger === undefined && made === '')) return
    this.#end(this.#trigger?.work)
    this.#trigger = undefined
    if (updateTrigger === undefined) return
    const { worker, cell, clock, random, log, events } = this.#parts
    const trigger = { ...updateTrigger, podSelector }
    this.#trigger = { made, work: new UpdateTrigger({ client: worker, cell, trigger, clock, random, log, events }) }
  }

  #end(work: { stop(): Promise<void> } | undefined): void {
    if (work === undefined) return
    const ending = work.stop()
    this.#ending.add(ending)
    void ending.finally(() => this.#ending.delete(ending))
  }
}

const IDLE: Omit<PodAggregatorDescription, 'cell'> = {
  active: false,
  pods: 0,
  resourceVersion: '',
  streamTime: undefined,
  current: false,
  message: '',
  queued: 0,
  waiting: 0,
}

/** The same for the same; '' = for nothing. */
function madeFor(parts: readonly unknown[] | undefined): string {
  return parts === undefined ? '' : JSON.stringify(parts)
}
