// Counts the pods of one cell for the statuses of PodProtectors, and prunes completed deletions from their admission
// histories. Only one replica does so at a time; the others keep no pods.

import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { Tenant } from '../../../kube/controllers/kernel/leadership.ts'
import type { CountedPods } from './cell-pods.ts'
import type { PodAggregatorDeps, PodAggregatorDescription } from './deps.ts'
import type { CellMember } from './member.ts'
import { AggregatorTerm } from './term.ts'
import { UpdateTrigger } from './update-trigger.ts'

export type { CellMember, PodAggregatorDeps, PodAggregatorDescription }

/** Counts from now on, while this replica leads. */
export function startPodAggregator(deps: PodAggregatorDeps): PodAggregator {
  return new PodAggregator(deps)
}

export class PodAggregator {
  readonly #deps: PodAggregatorDeps
  readonly #tenant: Tenant
  /** The work as leader, and the configuration it was started with. */
  #term: { readonly made: string; readonly work: AggregatorTerm } | undefined
  /** By cluster. */
  readonly #triggers = new Map<string, { readonly made: string; readonly work: UpdateTrigger }>()
  readonly #ending = new Set<Promise<void>>()

  constructor(deps: PodAggregatorDeps) {
    this.#deps = deps
    const ended = (): Promise<unknown> => Promise.all(this.#ending)
    this.#tenant = deps.leadership.settle(`the pod aggregator of ${deps.cell}`, () => this.update(), ended)
  }

  describe(): PodAggregatorDescription {
    return this.#term?.work.describe() ?? { ...IDLE, cell: this.#deps.cell }
  }

  /** undefined = this replica doesn't count them, or doesn't know all of them now. */
  pods(): CountedPods | undefined {
    return this.#term?.work.pods()
  }

  /** Call it when the cell's members or their specs have changed. */
  update(): void {
    const members = this.#tenant.holds() ? this.#deps.members().filter(({ aggregation }) => aggregation.enabled) : []
    this.#settleTerm(members)
    this.#settleTriggers(members)
  }

  /** No writes afterwards. */
  stop(): Promise<void> {
    return this.#tenant.leave()
  }

  #settleTerm(members: readonly CellMember[]): void {
    const made = madeFor(
      members.map(({ name, aggregation: { podSelector, syncTime, syncTimeAnnotation } }) => {
        return [name, podSelector, syncTime, syncTimeAnnotation]
      }),
    )
    if ((this.#term?.made ?? '') === made) return
    this.#end(this.#term?.work)
    this.#term = undefined
    if (members.length === 0) return
    try {
      this.#term = { made, work: new AggregatorTerm(this.#deps, members) }
    } catch (error) {
      const why = errorMessage(error)
      this.#deps.log.error('the pods of a cell cannot be counted', { cell: this.#deps.cell, why })
    }
  }

  /** One for each cluster that configures one: each cluster is a separate stream. */
  #settleTriggers(members: readonly CellMember[]): void {
    const { cell, clock, random, log, events } = this.#deps
    const wanted = new Set<string>()
    for (const { name, client, aggregation } of members) {
      const { podSelector, updateTrigger } = aggregation
      if (updateTrigger === undefined) continue
      wanted.add(name)
      const made = madeFor([podSelector, updateTrigger])
      const known = this.#triggers.get(name)
      if (known?.made === made) continue
      this.#end(known?.work)
      const trigger = { ...updateTrigger, podSelector }
      this.#triggers.set(name, { made, work: new UpdateTrigger({ client, cell, trigger, clock, random, log, events }) })
    }
    for (const [name, { work }] of this.#triggers) {
      if (wanted.has(name)) continue
      this.#triggers.delete(name)
      this.#end(work)
    }
  }

  #end(work: { stop(): Promise<void> } | undefined): void {
    if (work === undefined) return
    const ending = work.stop()
    this.#ending.add(ending)
    void ending.finally(() => this.#ending.delete(ending))
  }
}

const IDLE: Omit<PodAggregatorDescription, 'cell'> = {
  clusters: [],
  leads: false,
  sinceMs: 0,
  active: false,
  pods: 0,
  resourceVersion: '',
  streamTime: undefined,
  current: false,
  message: '',
  queued: 0,
  waiting: 0,
}

/** Equal for equal configurations; '' = none. */
function madeFor(values: readonly unknown[]): string {
  return values.length === 0 ? '' : JSON.stringify(values)
}
