// What flow control took for a request, and how it is released.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { refund, release } from '../limits/flow-control.ts'
import type { FlowCounter } from '../limits/flow-counter.ts'
import { closeWatch } from '../limits/in-flight.ts'

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
}

/** A watch has been answered: it holds no in-flight slot from here on (apiserver/pkg/server/filters/maxinflight.go). */
export function watchStarted({ held }: Holder): void {
  if (held?.inFlight !== true) return
  held.inFlight = false
  release(held.schema, held.counter, held.seats)
}

/** No endpoint could take the request: it costs no token. */
export function nothingSent({ held }: Holder): void {
  if (held?.token !== true) return
  held.token = false
  refund(held.schema, held.counter, held.seats)
}

/** The request has ended. */
export function giveBack(holder: Holder): void {
  watchStarted(holder)
  const { held } = holder
  if (held?.watch !== true) return
  held.watch = false
  closeWatch(held.counter)
}
