// Which pods of a cluster are guarded at all (spec.podProtection.objectSelector); used by the filter and the webhook.

import type { CompiledProtection } from '../../../gateway/core/cluster/compiled-cluster.ts'
import { type CompiledSelector, compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import type { Labels } from '../../../kube/core/selectors/label-requirement.ts'

type GuardSelector = Pick<CompiledSelector, 'matches'>

const EVERY_POD: GuardSelector = { matches: () => true }
const selectors = new WeakMap<object, GuardSelector>()

/** Whether a pod with these labels is guarded. An unreadable selector guards all pods. */
export function isGuarded({ objectSelector }: Pick<CompiledProtection, 'objectSelector'>, labels: Labels): boolean {
  if (objectSelector === undefined) return true
  let selector = selectors.get(objectSelector)
  if (selector === undefined) {
    try {
      selector = compileSelector(objectSelector)
    } catch {
      selector = EVERY_POD
    }
    selectors.set(objectSelector, selector)
  }
  return selector.matches(labels)
}
