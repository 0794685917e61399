// When a call of the gateway's own may go: clientConfig.qps, and a bound of what is under way, in turns by whoever has it made.

import type { Charge } from '../../api/ports/stream.ts'
import { CallLimitError } from '../../core/answers/call-errors.ts'
import type { CallRate, CallTurns, Turn } from '../../core/limits/call-turns.ts'
import { spreadRetryAfter } from '../../core/limits/spread-retry-after.ts'
import { callLimitMessage } from '../../core/policy/traffic-messages.ts'
import type { LiveCluster, OwnCall } from '../../state/clusters.ts'
import type { Gateway } from '../exchange/gateway.ts'

const NAMES: Readonly<Record<OwnCall, string>> = {
  'token-review': 'token reviews',
  'access-review': 'access reviews',
  'pod-read': 'reads of pods',
  'scale-read': 'reads of what is scaled',
  'write-check': 'checks of writes',
}

/** What is left for the call itself, of a long timeout; of a short one half. */
const CALL_MS = 2000

/** Calls of a cluster that somebody has to look at again when the next is due. */
const waking = new WeakMap<CallTurns, { readonly atMs: number; readonly timer: NodeJS.Timeout }>()

/**
 * @param charge who causes it: the address of an unauthenticated client, else a user
 * @returns to be called when the call is over
 * @throws {CallLimitError} when its turn does not come in time: two seconds before the end, at the latest
 */
export function takeTurn(
  gw: Gateway,
  live: LiveCluster,
  kind: OwnCall,
  charge: Charge,
  timeoutMs: number,
): Promise<() => void> {
  return takeTurnIn(gw, live.turns[kind], charge, timeoutMs, {
    rate: () => live.compiled.client,
    message: (atMost, seconds) => callLimitMessage(live.compiled.name, NAMES[kind], charge.source, atMost, seconds),
  })
}

/** What differs between turns of several kinds. */
export interface TurnRules {
  /** As it is now. */
  rate(): CallRate
  /** Why there is no turn. @param atMost as of `Turn.refused` */
  message(atMost: number | undefined, retryAfterSeconds: number): string
}

/** As takeTurn. */
export function takeTurnIn(
  gw: Gateway,
  turns: CallTurns,
  { source, weight }: Charge,
  timeoutMs: number,
  { rate, message }: TurnRules,
): Promise<() => void> {
  const now = (): number => gw.clock.monotonic()
  const longestWaitMs = Math.max(timeoutMs / 2, timeoutMs - CALL_MS)
  return new Promise((resolve, reject) => {
    const done = (): void => wakeIn(gw, rate, turns, turns.done(source, rate(), now()))
    const turn: Turn = {
      source,
      weight,
      longestWaitMs,
      granted() {
        clearTimeout(deadline)
        resolve(done)
      },
      refused(retryAfterMs, atMost) {
        clearTimeout(deadline)
        const retryAfterSeconds = spreadRetryAfter(retryAfterMs, gw.random())
        reject(new CallLimitError(message(atMost, retryAfterSeconds), retryAfterSeconds))
      },
    }
    const deadline = setTimeout(() => turns.expire(turn, rate()), longestWaitMs)
    wakeIn(gw, rate, turns, turns.ask(turn, rate(), now()))
  })
}

/** Nothing else happens when a call becomes due. An earlier time, after `qps` was raised, takes the place of a later one. */
function wakeIn(gw: Gateway, rate: () => CallRate, turns: CallTurns, waitMs: number): void {
  if (waitMs === 0) return
  const atMs = gw.clock.monotonic() + waitMs
  const before = waking.get(turns)
  if (before !== undefined && before.atMs <= atMs) return
  clearTimeout(before?.timer)
  const timer = setTimeout(() => {
    waking.delete(turns)
    wakeIn(gw, rate, turns, turns.advance(rate(), gw.clock.monotonic()))
  }, waitMs).unref()
  waking.set(turns, { atMs, timer })
}
