// Sends pod deletions to the ledger, fairly queued by caller.

import type { CallRate } from '../../gateway/core/limits/call-turns.ts'
import { deletionTurnMessage } from '../../gateway/core/policy/traffic-messages.ts'
import { longestWaitMs, takeTurnIn } from '../../gateway/request/calls/call-turn.ts'
import { MAX_DELETIONS } from '../../gateway/state/clusters.ts'
import { CallLimitError } from '../../kube/core/answers/call-errors.ts'
import type { ProtectionRequest, ProtectionVerdict } from '../api/protection.ts'
import { unanswered } from '../core/ledger/verdicts.ts'
import type { Deletion } from './deletion.ts'
import { errorVerdict } from './verdict.ts'

/**
 * Asks the ledger when the caller's turn comes, so that thousands of deletions by one user don't delay another's. A deletion without a
 * turn in time is refused, whatever the failure policy says.
 */
export async function reviewDeletions(
  deletion: Deletion,
  requests: readonly ProtectionRequest[],
): Promise<readonly ProtectionVerdict[]> {
  const { exchange, decision, gate, settings } = deletion
  const { gw, charge } = exchange
  try {
    const done = await takeTurnIn(gw, decision.live.deletions, charge, longestWaitMs(settings.timeoutMs), {
      rate: () => UNLIMITED,
      message: (_, seconds) => deletionTurnMessage(decision.cluster.name, charge.source, MAX_DELETIONS, seconds),
    })
    return await gate.review(requests).finally(done)
  } catch (error) {
    if (!(error instanceof CallLimitError)) throw error
    return requests.map((request) => notNow(request, error))
  }
}

const UNLIMITED: CallRate = { qps: 0, burst: 0 }

function notNow(request: ProtectionRequest, { message, retryAfterSeconds }: CallLimitError): ProtectionVerdict {
  const pass = unanswered(request, message)
  // Passes if no protector can refuse it.
  if (pass.admitted) return pass
  return { ...errorVerdict(message), status: 'RetryAdvised', retryAfterSeconds }
}
