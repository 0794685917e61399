// What flow control took for a request, and how it is released.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { refund } from '../limits/flow-control.ts'
import type { FlowCounter } from '../limits/flow-counter.ts'
import { closeWatch, freeSlot } from '../limits/in-flight.ts'

export interface Held {
  readonly schema: CompiledSchema
  readonly counter: FlowCounter
  /** Number of slots or tokens. */
  readonly seats: number
  /** An in-flight slot is held. */
  inFlight: boolean
  /** A token was taken: returned only if the request could not be sent. */
  token: boolean
  watch: boolean
}

interface Holder {
  readonly held: Held | undefined
  /** Released with this one. */
  readonly cameBy?: Holder | undefined
}

/** A watch has been answered: it holds no in-flight slot from here on (apiserver/pkg/server/filters/maxinflight.go). */
export function watchStarted({ held, cameBy }: Holder): void {
  if (cameBy !== undefined) watchStarted(cameBy)
  if (held !== undefined) freeInFlight(held)
}

/** No endpoint could take the request: it costs no token. */
export function nothingSent({ held, cameBy }: Holder): void {
  if (cameBy !== undefined) nothingSent(cameBy)
  if (held?.token !== true) return
  held.token = false
  refund(held.schema, held.counter, held.seats)
}

/** The request has ended. */
export function giveBack({ held, cameBy }: Holder): void {
  if (cameBy !== undefined) giveBack(cameBy)
  if (held === undefined) return
  freeInFlight(held)
  if (!held.watch) return
  held.watch = false
  closeWatch(held.counter)
}

function freeInFlight(held: Held): void {
  if (!held.inFlight) return
  held.inFlight = false
  freeSlot(held.counter, held.seats)
}
