// Stores which pods have a PodProtector, for the ledger at a start that does not reach the core cluster. Availability counts are not stored: they
// would be outdated.

import type { LastGoodKeeper } from '../../gateway/io/last-good/keeper.ts'
import { sameJson } from '../../kit/core/text/same-json.ts'
import type { ProtectionLedger } from '../controllers/ledger/ledger.ts'
import { type KeptProtector, RestoredProtectors } from '../state/protectors.ts'

/** Where states are kept for a start without their source. */
export interface ProtectorStates {
  /** Milliseconds that this start still waits for its sources. */
  readonly waitMs: number
  /** undefined, with a log line, if the data directory is not writable. @param source server it belongs to: a file of another one is rejected */
  keeperIfWritable(name: 'protectors', source: string): LastGoodKeeper | undefined
}

export interface KeptProtectors {
  stop(): void
}

/** @param waitMs that this start still waits for the core cluster */
export function keepProtectors(ledger: ProtectionLedger, keeper: LastGoodKeeper, waitMs: number): KeptProtectors {
  const selectors = new Map<string, KeptProtector['selector']>()
  const leave = ledger.protectors.onChange(({ key, protector }, gone) => {
    const { selector } = protector.spec
    if (gone) {
      selectors.delete(key)
      keeper.delete(key)
      return
    }
    // Most changes only affect the status.
    const before = selectors.get(key)
    if (before !== undefined && sameJson(before, selector)) return
    selectors.set(key, selector)
    keeper.put(key, { key, namespace: protector.metadata.namespace ?? '', selector } satisfies KeptProtector)
  })
  const late = setTimeout(() => {
    const state = ledger.protectors.synced ? undefined : keeper.restore()
    if (state === undefined) return
    ledger.restore(new RestoredProtectors(state.records))
    keeper.serves(state.timeMs)
  }, waitMs)
  late.unref()
  return {
    stop: () => {
      clearTimeout(late)
      leave()
    },
  }
}
