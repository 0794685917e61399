// The limits of a cluster as admission sees them, and those of a cluster that has no traffic.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { tryAcquire } from './flow-control.ts'
import { createFlowMemory, FlowCounter } from './flow-counter.ts'
import { tryOpenWatch } from './in-flight.ts'

export interface Limits {
  /**
   * Takes a token or slot of `schema`, an object of the request's snapshot; undefined = refused. What was taken is given back
   * to the returned counter.
   * @param nowMs monotonic milliseconds
   * @param seats how many tokens or slots, as `seatsTaken` says
   */
  tryAcquire(schema: CompiledSchema, userName: string, nowMs: number, seats: number): FlowCounter | undefined
  /**
   * Counts a new watch in the counter that admitted its request; undefined = the cap is reached. The returned counter may be
   * another one.
   */
  tryOpenWatch(
    schema: CompiledSchema,
    admittedBy: FlowCounter,
    userName: string,
    nowMs: number,
  ): FlowCounter | undefined
  /** Whether this node's heartbeat passes where a limit is reached: as often as kubelets send them, and no oftener. */
  tryHeartbeat(userName: string, nowMs: number): boolean
  /** The counter for requests of `userName` against `schema`. */
  counterFor(schema: CompiledSchema, userName: string, nowMs: number): FlowCounter
}

/** For one request, which is the first: full buckets, nothing in flight. Limits that replicas share are as on one replica. */
export function freshLimits(): Limits {
  let counter: FlowCounter | undefined
  const counterFor = (): FlowCounter => {
    counter ??= new FlowCounter(createFlowMemory(1), 0, 0)
    return counter
  }
  return {
    counterFor,
    tryAcquire: (schema, _userName, nowMs, seats) =>
      tryAcquire(schema, counterFor(), nowMs, seats) ? counterFor() : undefined,
    tryHeartbeat: () => true,
    tryOpenWatch: (schema, admittedBy) => (tryOpenWatch(schema, admittedBy) ? admittedBy : undefined),
  }
}
