// The limits of a cluster as admission sees them, and limits of a cluster without traffic.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { tryAcquire } from './flow-control.ts'
import { createFlowMemory, FlowCounter } from './flow-counter.ts'
import { tryOpenWatch } from './in-flight.ts'

export interface Limits {
  /**
   * Takes a token or slot of `schema`, an object of the request's snapshot; undefined = refused. Return what was taken to the returned
   * counter.
   * @param nowMs monotonic milliseconds
   * @param seats number of tokens or slots, see `seatsTaken`
   */
  tryAcquire(schema: CompiledSchema, userName: string, nowMs: number, seats: number): FlowCounter | undefined
  /**
   * Counts a new watch in the counter that admitted its request; undefined = the cap is reached. May return a different counter.
   */
  tryOpenWatch(
    schema: CompiledSchema,
    admittedBy: FlowCounter,
    userName: string,
    nowMs: number,
  ): FlowCounter | undefined
  /** Whether this node's heartbeat passes although a limit is reached: as often as kubelets send them, and no more often. */
  tryHeartbeat(userName: string, nowMs: number): boolean
  /** The counter for requests of `userName` against `schema`. */
  counterFor(schema: CompiledSchema, userName: string, nowMs: number): FlowCounter
}

/** Fresh state, as for the very first request: full buckets, nothing in flight. Limits shared by replicas behave as on one replica. */
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
