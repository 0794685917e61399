// The scale-up guard on the request path: the autoscaler may not raise a node group that has just failed to scale up, so that it tries
// the next group. Lowering, and writing the current value, always passes.

import { scaleChange } from '../../gateway/request/calls/scale-change.ts'
import type { Decision, RequestFilter } from '../../gateway/request/exchange/decision.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { type GuardedWrite, raiseRefusal } from '../core/guard/check-raise.ts'
import type { GuardedRaise, ScaleUpGuardTable } from '../state/scale-up-guards.ts'

/** In details.causes of the refusal. */
const BACKOFF_CAUSE = 'NodeGroupBackoff'

interface ScaleUpGuardFilterDeps {
  /** Node groups that the autoscaler may not scale up at the moment. */
  readonly guards: ScaleUpGuardTable
  /** A write to the replicas of a node group in backoff. */
  counted(cluster: string, guard: string, outcome: GuardedWrite): void
}

/** The filter of one thread. */
export class ScaleUpGuardFilter implements RequestFilter {
  readonly #guards: ScaleUpGuardTable
  readonly #deps: ScaleUpGuardFilterDeps

  constructor(deps: ScaleUpGuardFilterDeps) {
    this.#guards = deps.guards
    this.#deps = deps
  }

  /** Shadow mode applies to the backoff, not to the other refusals here. */
  shadow(): boolean {
    return false
  }

  check(decision: Decision): Promise<Refusal | undefined> | undefined {
    const guards = this.#guards
    if (guards.size === 0) return undefined
    const raise = guards.find(decision.cluster.name, decision.info, decision.moment.nowMs)
    return raise === undefined ? undefined : this.#guard(decision, raise)
  }

  async #guard(decision: Decision, raise: GuardedRaise): Promise<Refusal | undefined> {
    const change = await scaleChange(decision)
    if (change === undefined || isRefusal(change)) return change
    const { from, to, unknown } = change
    // Writes that can't be parsed pass: the autoscaler's own can be.
    if (from === undefined || to === undefined || unknown !== undefined) return this.#told(decision, raise, 'unchecked')
    const message = raiseRefusal(raise.backoff, from, to, decision.exchange.gw.clock.now())
    if (message === '') return this.#told(decision, raise, 'passed')
    if (!raise.users.has(decision.user.name)) {
      decision.warnings = [...decision.warnings, `the autoscaler may not do this now: ${message}`]
      return this.#told(decision, raise, 'warned')
    }
    if (raise.shadow) {
      decision.warnings = [...decision.warnings, `scale-up-guard in shadow mode would refuse: ${message}`]
      decision.shadow = [...decision.shadow, `scale-up-guard/${raise.guard}`]
      decision.exchange.record.shadow = decision.shadow
      return this.#told(decision, raise, 'shadow')
    }
    this.#told(decision, raise, 'refused')
    const { resource: kind, name } = decision.info
    const causes = [{ reason: BACKOFF_CAUSE, message: raise.backoff.reason, field: 'spec.replicas' }]
    // No Retry-After: the autoscaler would block its only loop on it.
    return refuse('scale-up-backed-off', message, { causes, rule: raise.guard, object: { kind, name } })
  }

  #told({ cluster }: Decision, { guard }: GuardedRaise, outcome: GuardedWrite): undefined {
    this.#deps.counted(cluster.name, guard, outcome)
  }
}
