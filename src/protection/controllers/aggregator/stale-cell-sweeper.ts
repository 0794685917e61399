// Marks cells that have been silent for staleAfter in the statuses of PodProtectors that have no other writer, and removes the mark
// when they are heard from again. The ledger compares the times itself; the mark is for readers of statuses.

import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { StatusError } from '../../../kube/api/status.ts'
import type { Leading, Term } from '../../../kube/controllers/kernel/leadership.ts'
import type { ProtectionSettings } from '../../../process/api/protection-settings.ts'
import { POD_PROTECTORS } from '../../api/pod-protector-kind.ts'
import { limitsOf, summarize } from '../../core/history/cell-history.ts'
import { staleChanged } from '../../core/ledger/cells.ts'
import type { LiveProtector, ProtectorTable } from '../../state/protectors.ts'

interface StaleCellSweeperDeps {
  readonly core: ObjectClient
  readonly protectors: ProtectorTable
  readonly leadership: Leading
  readonly settings: ProtectionSettings
  readonly clock: Clock
  readonly log: Logger
}

export interface StaleCellSweeper {
  /** No writes afterwards. */
  stop(): Promise<void>
}

/** Minimum interval, however short staleAfter is. */
const MIN_SWEEP_MS = 100

/** Sweeps three times per staleAfter while this replica leads; does nothing when that is 0. */
export function startStaleCellSweeper(deps: StaleCellSweeperDeps): StaleCellSweeper {
  const tenant = deps.leadership.run('the sweeper of silent cells', (term) => startSweeping(deps, term))
  return { stop: () => tenant.leave() }
}

function startSweeping(deps: StaleCellSweeperDeps, term: Term): StaleCellSweeper {
  const { staleAfterMs } = deps.settings
  let running = Promise.resolve()
  let sweeping = false
  const sweep = async (): Promise<void> => {
    const found = staleChanged(deps.protectors.values(), staleAfterMs, deps.clock.now() * 1000)
    for (const live of found) {
      if (!term.holds()) return
      await resummarize(deps, live)
    }
  }
  const begin = (): void => {
    if (sweeping || !term.holds()) return
    sweeping = true
    running = sweep().finally(() => {
      sweeping = false
    })
  }
  const timer = staleAfterMs > 0 ? setInterval(begin, Math.max(MIN_SWEEP_MS, staleAfterMs / 3)) : undefined
  timer?.unref()
  return {
    stop: async () => {
      clearInterval(timer)
      await running
    },
  }
}

/** Never rejects; a failed write is retried by the next sweep. */
async function resummarize(
  { core, protectors, settings, clock, log }: StaleCellSweeperDeps,
  live: LiveProtector,
): Promise<void> {
  const { protector } = live
  try {
    const limits = limitsOf(protector, settings)
    const status = summarize(protector.status?.cells ?? [], limits, Math.round(clock.now() * 1000))
    protectors.put(await core.update(POD_PROTECTORS, { ...protector, status }, 'status'))
  } catch (error) {
    // Another client wrote it first, or it was deleted.
    if (error instanceof StatusError && (error.reason === 'Conflict' || error.code === 404)) return
    const why = errorMessage(error)
    log.warn('a silent cell could not be marked stale', { protector: live.key, why })
  }
}
