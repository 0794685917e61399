// Admission: every filter in order. Only this file makes a Permit, and forward() takes nothing else.

import { closeWatch, refund, release } from '../core/flow-control.ts'
import type { Refusal } from '../core/refusal.ts'
import type { AdmissionRequest, Held } from './filters/filter.ts'
import { FILTERS } from './filters/order.ts'

/** What admission allows, and what has to be given back: use it with `using`, or dispose it once. */
class AdmissionPermit implements Disposable {
  readonly #held: Held | undefined
  /** `Warning` texts: what would have refused, were it not in shadow mode. */
  readonly warnings: readonly string[]
  /** `filter/rule` of the same. */
  readonly shadow: readonly string[]

  constructor(held: Held | undefined, warnings: readonly string[], shadow: readonly string[]) {
    this.#held = held
    this.warnings = warnings
    this.shadow = shadow
  }

  /** A watch has its answer: it holds no in-flight slot from here on (apiserver/pkg/server/filters/maxinflight.go). */
  watchStarted(): void {
    const held = this.#held
    if (held?.inFlight !== true) return
    held.inFlight = false
    release(held.schema, held.cell)
  }

  /** The request could be sent to no endpoint: it costs no token. */
  nothingSent(): void {
    const held = this.#held
    if (held?.token !== true) return
    held.token = false
    refund(held.schema, held.cell)
  }

  [Symbol.dispose](): void {
    this.watchStarted()
    const held = this.#held
    if (held?.watch !== true) return
    held.watch = false
    closeWatch(held.schema, held.cell)
  }
}

export type Permit = AdmissionPermit

const NONE: readonly string[] = []

export function admit(request: AdmissionRequest): Permit | Refusal {
  let warnings = NONE
  let shadow = NONE
  for (const filter of FILTERS) {
    const refusal = filter.check(request)
    if (refusal === undefined) continue
    if (!filter.shadow(request)) return refusal
    warnings = [...warnings, `${filter.name} in shadow mode would refuse: ${refusal.message}`]
    shadow = [...shadow, `${filter.name}/${refusal.rule}`]
  }
  return new AdmissionPermit(request.held, warnings, shadow)
}
