// The scale-up guard in simulated time: the rules are those of src/scale-up-guard/core/guard, what writes to the cluster is the model's.

import { ExponentialBackoff } from '../../src/scale-up-guard/core/cluster-state.ts'
import type { GroupBackoff } from '../../src/scale-up-guard/core/guard/check-raise.ts'
import type { ScaleUpGuardPolicy } from '../../src/scale-up-guard/core/guard/compile-guard.ts'
import { evaluateGroup, type GroupMemory } from '../../src/scale-up-guard/core/guard/evaluate-group.ts'
import type { CloudGroup } from './autoscaler-model.ts'

export class GuardModel {
  readonly #policy: ScaleUpGuardPolicy
  readonly #memory = new Map<string, GroupMemory>()
  readonly #backoff: ExponentialBackoff<string>
  readonly #backoffs = new Map<string, GroupBackoff>()

  constructor(policy: ScaleUpGuardPolicy) {
    this.#policy = policy
    this.#backoff = new ExponentialBackoff(policy.backoff)
  }

  backoff(group: string): GroupBackoff | undefined {
    return this.#backoffs.get(group)
  }

  /** Something of the group changed, or may be due. */
  look(group: CloudGroup, nowMs: number): void {
    const machines = group.provider === 'machines' ? group.asMachines(nowMs) : undefined
    const facts = {
      id: group.id,
      replicas: group.target,
      minSize: group.minSize,
      paused: false,
      rollingOut: false,
      machines,
    }
    const { isNew, correction, failures, memory } = evaluateGroup(
      { ...facts, nodes: group.nodes.length, instances: group.nodes.length },
      this.#memory.get(group.id),
      this.#policy,
      nowMs,
    )
    this.#memory.set(group.id, memory)
    if (isNew) {
      const reason = failures[0]?.reason ?? 'NoNode'
      const untilMs = this.#backoff.fail(group.id, reason, nowMs)
      const attempt = (this.#backoffs.get(group.id)?.attempt ?? 0) + 1
      const count = failures.length
      this.#backoffs.set(group.id, { group: group.id, untilMs, attempt, failed: count, machines: count, reason })
    }
    if (correction !== undefined) group.lower(group.target - correction.replicas)
  }
}
