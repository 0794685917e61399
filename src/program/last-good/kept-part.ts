// Stores this replica's part of shared limits, so that a start without Redis takes no more than before.

import type { KeptPart } from '../../gateway/controllers/limits/global-limits.ts'
import type { LastGoodKeeper } from '../../gateway/io/last-good/keeper.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'

const NAME = 'part'

export function keptPart(keeper: Pick<LastGoodKeeper, 'restore' | 'serves' | 'put' | 'current'>): KeptPart {
  return {
    restore: () => {
      const state = keeper.restore()
      const record = state?.records[0]
      if (state === undefined || !isRecord(record)) return undefined
      const { replicas, rank } = record
      // Another version may have used a different format.
      if (!isCount(replicas) || !isCount(rank)) return undefined
      keeper.serves(state.timeMs)
      return { replicas, rank }
    },
    keep: ({ replicas, rank }) => keeper.put(NAME, { replicas, rank }),
    current: (current) => keeper.current(current),
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}
