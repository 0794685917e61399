// The scale-up guard on the request path: the autoscaler may not raise a node group that has just failed to scale up, so that it tries
// the next group. Lowering, and writing the current value, always passes.

import type { Filter } from '../../gateway/core/admission/filter.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import type { GuardedWrite } from '../../gateway/request/exchange/gateway.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { scaleChange } from '../../scaling/request/scale-change.ts'
import { raiseRefusal } from '../core/guard/check-raise.ts'
import type { GuardedRaise } from '../state/scale-up-guards.ts'

export const scaleUpGuard: Filter<Decision, Promise<Refusal | undefined>> = {
  // Shadow mode applies to the backoff, not to the other refusals here.
  shadow: () => false,
  check(decision) {
    const { scaleUpGuards } = decision.exchange.gw
    if (scaleUpGuards.size === 0) return undefined
    const raise = scaleUpGuards.find(decision.cluster.name, decision.info, decision.moment.nowMs)
    return raise === undefined ? undefined : guardRaise(decision, raise)
  },
}

async function guardRaise(decision: Decision, raise: GuardedRaise): Promise<Refusal | undefined> {
  const change = await scaleChange(decision)
  if (change === undefined || isRefusal(change)) return change
  const { from, to, unknown } = change
  // Writes that can't be parsed pass: the autoscaler's own can be.
  if (from === undefined || to === undefined || unknown !== undefined) return told(decision, raise, 'unchecked')
  const message = raiseRefusal(raise.backoff, from, to, decision.exchange.gw.clock.now())
  if (message === '') return told(decision, raise, 'passed')
  if (!raise.users.has(decision.user.name)) {
    decision.warnings = [...decision.warnings, `the autoscaler may not do this now: ${message}`]
    return told(decision, raise, 'warned')
  }
  if (raise.shadow) {
    decision.warnings = [...decision.warnings, `scale-up-guard in shadow mode would refuse: ${message}`]
    decision.shadow = [...decision.shadow, `scale-up-guard/${raise.guard}`]
    decision.exchange.record.shadow = decision.shadow
    return told(decision, raise, 'shadow')
  }
  told(decision, raise, 'refused')
  const { resource: kind, name } = decision.info
  const causes = [{ reason: BACKOFF_CAUSE, message: raise.backoff.reason, field: 'spec.replicas' }]
  // No Retry-After: the autoscaler would block its only loop on it.
  return refuse('scale-up-backed-off', message, { causes, rule: raise.guard, object: { kind, name } })
}

/** In details.causes of the refusal. */
const BACKOFF_CAUSE = 'NodeGroupBackoff'

function told({ exchange, cluster }: Decision, { guard }: GuardedRaise, outcome: GuardedWrite): undefined {
  exchange.gw.events.guardedWrite(cluster.name, guard, outcome)
  return undefined
}
