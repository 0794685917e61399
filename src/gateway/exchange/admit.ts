// Admission: every filter in order. Only this file makes a Permit, and forward() takes nothing else.

import { refund, release } from '../../core/limits/flow-control.ts'
import { closeWatch } from '../../core/limits/in-flight.ts'
import type { Refusal } from '../../core/refusal/refusal.ts'
import type { AdmissionRequest } from '../filters/filter.ts'
import { FILTERS } from '../filters/order.ts'

declare const ADMITTED: unique symbol

/** A request that passed every filter; what they took of it is given back through the functions below. */
export type Permit = AdmissionRequest & { readonly [ADMITTED]: true }

export function admit(request: AdmissionRequest): Permit | Refusal {
  for (let i = 0; i < FILTERS.length; i++) {
    const filter = FILTERS[i]
    const refusal = filter?.check(request)
    if (filter === undefined || refusal === undefined) continue
    if (!filter.shadow(request)) return refusal
    request.warnings = [...request.warnings, `${filter.name} in shadow mode would refuse: ${refusal.message}`]
    request.shadow = [...request.shadow, `${filter.name}/${refusal.rule}`]
  }
  return request as Permit
}

/** A watch has its answer: it holds no in-flight slot from here on (apiserver/pkg/server/filters/maxinflight.go). */
export function watchStarted({ held }: Permit): void {
  if (held?.inFlight !== true) return
  held.inFlight = false
  release(held.schema, held.cell)
}

/** The request could be sent to no endpoint: it costs no token. */
export function nothingSent({ held }: Permit): void {
  if (held?.token !== true) return
  held.token = false
  refund(held.schema, held.cell)
}

/** The request is over. */
export function giveBack(permit: Permit): void {
  watchStarted(permit)
  const { held } = permit
  if (held?.watch !== true) return
  held.watch = false
  closeWatch(held.schema, held.cell)
}
