// Turns of the gateway's event loops that took long, without those in which a thread waited for a processor or collected garbage.

import type { TestGateway } from '../harness/gateways/gateway.ts'

const STALL = /^portcullis_event_loop_stalls_total\{[^}]*step="(?!off-cpu|gc)[^}]*\} (\d+)/gm

/** How many since its start, of all threads. */
export async function stallsOf(gateway: TestGateway): Promise<number> {
  return [...(await gateway.metrics()).matchAll(STALL)].reduce((sum, match) => sum + Number(match[1]), 0)
}
