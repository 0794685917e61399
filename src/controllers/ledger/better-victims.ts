// Names pods that could go in the place of those whose deletions are refused, out of the pods that this replica counts. A refusal must
// cost next to nothing, so what is found for a PodProtector is kept for a second.

import type { LabelSelector } from '../../api/pod-protector/pod-protector.ts'
import type { Clock } from '../../api/ports/ports.ts'
import type { BetterVictim, PodFacts, ProtectionRequest, ProtectionVerdict } from '../../api/ports/protection.ts'
import { FirstVictims } from '../../core/protection/competition/better-victims.ts'
import { type RankedPod, rankedPod } from '../../core/protection/competition/deletion-order.ts'
import { uidsIn } from '../../core/protection/ledger/known-quota.ts'
import type { LiveProtector, ProtectorTable } from '../../state/protectors.ts'

/** The pods of cells, as this replica counts them. */
export interface CountedCells {
  /** @returns undefined when another replica counts the cell, or not all of its pods are known */
  select(cell: string, namespace: string, selector: LabelSelector): Iterable<PodFacts> | undefined
  /** undefined = there is none, or that is not known. */
  get(cell: string, uid: string): PodFacts | undefined
}

interface Known {
  readonly victims: FirstVictims
  /** Monotonic milliseconds. */
  readonly untilMs: number
}

const KEPT_MS = 1_000
const MAX_KEPT = 1_000
/** Of one PodProtector in one cell. With more, the first ones are looked at. */
const MAX_PODS = 10_000

export class BetterVictims {
  readonly #protectors: ProtectorTable
  readonly #cells: CountedCells
  readonly #clock: Clock
  /** By protector and cell. */
  readonly #known = new Map<string, Known>()

  constructor(protectors: ProtectorTable, cells: CountedCells, clock: Clock) {
    this.#protectors = protectors
    this.#cells = cells
    this.#clock = clock
  }

  /** @returns none where they are not asked for, the deletion is not refused, or nobody knows */
  of(request: ProtectionRequest, { protector, admitted, overridden }: ProtectionVerdict): readonly BetterVictim[] {
    const { hints = 0, cell, pod } = request
    const refused = hints > 0 && !admitted && overridden === '' && protector !== ''
    const own = refused ? rankedPod(cell, pod) : undefined
    const live = this.#protectors.get(protector)
    if (own === undefined || live === undefined) return []
    const admittedUids = uidsIn(live.protector)
    const stays = (uid: string): boolean => {
      return !admittedUids.has(uid) && this.#cells.get(cell, uid)?.terminating === false
    }
    return this.#firstOf(live, cell)?.betterThan(own, hints, stays) ?? []
  }

  #firstOf({ key, protector }: LiveProtector, cell: string): FirstVictims | undefined {
    const nowMs = this.#clock.monotonic()
    const place = `${key}\n${cell}`
    const known = this.#known.get(place)
    if (known !== undefined && known.untilMs > nowMs) return known.victims
    const pods = this.#cells.select(cell, protector.metadata.namespace ?? '', protector.spec.selector)
    if (pods === undefined) return undefined
    const victims = new FirstVictims(rankedPods(cell, pods), this.#clock.now())
    this.#known.delete(place)
    this.#known.set(place, { victims, untilMs: nowMs + KEPT_MS })
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_KEPT) break
      this.#known.delete(oldest)
    }
    return victims
  }
}

/** Those that were read with what orders deletions. */
export function rankedPods(cell: string, pods: Iterable<PodFacts>): readonly RankedPod[] {
  const found: RankedPod[] = []
  for (const pod of pods) {
    if (found.length === MAX_PODS) break
    const one = rankedPod(cell, pod)
    if (one !== undefined) found.push(one)
  }
  return found
}
