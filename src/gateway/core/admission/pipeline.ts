// Admission: every filter in order. The request path and `explain` each run it with their own set of filters. Only this file makes a
// PermitOf, and nothing is forwarded without one.

import { isRefusal, type Refusal } from '../../../kit/core/refusal/refusal.ts'
import type { Admission, Filter } from './filter.ts'
import { FILTER_ORDER, type FilterName, type FilterSet } from './order.ts'

declare const ADMITTED: unique symbol

/** A request that passed every filter; what they took is released through held.ts. */
export type PermitOf<A extends Admission> = A & { readonly [ADMITTED]: true }

/** @typeParam Later a promise, if a filter of the set may have to wait */
export class Pipeline<A extends Admission, Later extends object = never> {
  /** In their order; undefined = no subject has registered one. */
  readonly #filters: readonly (Filter<A, Later> | undefined)[]

  constructor(filters: FilterSet<A, Later>) {
    this.#filters = FILTER_ORDER.map((name) => filters[name])
  }

  /** Runs the remaining filters. A promise = one of them has to wait: pass its result to `resume`. */
  run(admission: A): PermitOf<A> | Refusal | Later {
    for (; admission.passed < this.#filters.length; admission.passed++) {
      const outcome = this.#filters[admission.passed]?.check(admission)
      if (outcome === undefined) continue
      if (!isRefusal(outcome) || !this.#isShadowed(admission, outcome)) return outcome
    }
    return admission as A & { readonly [ADMITTED]: true }
  }

  /** Continues after the filter that had to wait. */
  resume(admission: A, refusal: Refusal | undefined): PermitOf<A> | Refusal | Later {
    if (refusal !== undefined && !this.#isShadowed(admission, refusal)) return refusal
    admission.passed++
    return this.run(admission)
  }

  /** Discards the answers of `name` and later filters: `name` runs again, and its answer goes to `resume`. */
  rewind(admission: A, name: FilterName): void {
    admission.passed = FILTER_ORDER.indexOf(name)
  }

  /** For a filter that lets the request pass to where it is decided again: those after it are not asked here. */
  skipRest(admission: A): void {
    admission.passed = this.#filters.length - 1
  }

  /** In shadow mode a refusal is only a warning. */
  #isShadowed(admission: A, { message, rule }: Refusal): boolean {
    if (this.#filters[admission.passed]?.shadow(admission) !== true) return false
    const name = FILTER_ORDER[admission.passed] ?? ''
    admission.warnings = [...admission.warnings, `${name} in shadow mode would refuse: ${message}`]
    admission.shadow = [...admission.shadow, `${name}/${rule}`]
    return true
  }
}
