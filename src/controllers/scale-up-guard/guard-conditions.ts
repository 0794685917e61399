// The conditions of a ScaleUpGuard; when each changed is kept over a restart.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord, recordOf, textOf } from '../../api/kube/object-shape.ts'
import type { GuardCondition } from '../../api/scale-up-guard/scale-up-guard.ts'
import { metaTime } from '../../core/text/meta-time.ts'

type ConditionType = 'Ready' | 'NodesKnown'

export class GuardConditions {
  readonly #conditions = new Map<string, GuardCondition>()
  readonly #generation: number

  /** @param object the guard, with the conditions that it has */
  constructor(object: JsonObject, generation: number) {
    this.#generation = generation
    const { conditions } = recordOf(object['status'])
    const list: readonly unknown[] = Array.isArray(conditions) ? conditions : []
    for (const { type, status, lastTransitionTime } of list.filter(isRecord)) {
      if (status !== 'True' && status !== 'False') continue
      const lastTime = textOf(lastTransitionTime)
      this.#conditions.set(textOf(type), conditionOf(textOf(type), status, '', '', lastTime, generation))
    }
  }

  set(type: ConditionType, holds: boolean, reason: string, message: string, nowMs: number): void {
    const known = this.#conditions.get(type)
    const status = holds ? 'True' : 'False'
    const time = known?.status === status ? known.lastTransitionTime : metaTime(nowMs)
    this.#conditions.set(type, conditionOf(type, status, reason, message, time, this.#generation))
  }

  all(): readonly GuardCondition[] {
    return [...this.#conditions.values()]
  }
}

function conditionOf(
  type: string,
  status: 'True' | 'False',
  reason: string,
  message: string,
  lastTransitionTime: string,
  observedGeneration: number,
): GuardCondition {
  return { type, status, reason, message: message.slice(0, 1024), observedGeneration, lastTransitionTime }
}
