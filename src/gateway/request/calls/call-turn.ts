// Throttles the gateway's own calls: a rate such as clientConfig.qps and a limit on calls in flight, fairly queued by the source that
// causes them.

import type { Charge } from '../../../kit/api/stream.ts'
import { CallLimitError } from '../../../kube/core/answers/call-errors.ts'
import { type CallRate, type CallTurns, Turn } from '../../core/limits/call-turns.ts'
import { spreadRetryAfter } from '../../core/limits/spread-retry-after.ts'
import { callLimitMessage } from '../../core/policy/traffic-messages.ts'
import type { LiveCluster, OwnCall } from '../../state/clusters.ts'
import type { Gateway } from '../exchange/gateway.ts'

const NAMES: Readonly<Record<OwnCall, string>> = {
  'token-review': 'token reviews',
  'access-review': 'access reviews',
  'pod-read': 'reads of pods',
  'page-read': 'lists of federated members',
  'scale-read': 'reads of what is scaled',
  'write-check': 'checks of writes',
}

/** Reserved for the call itself out of a long timeout; half of a short one. */
const CALL_MS = 2000

/** Queues with a timer for the next call that becomes due. */
const waking = new WeakMap<CallTurns, { readonly atMs: number; readonly timer: NodeJS.Timeout }>()

/**
 * @param charge the source that causes the call: the address of an unauthenticated client, else a user
 * @returns a release function to call when the call is over
 * @throws {CallLimitError} when its turn does not come in time: two seconds before the timeout, at the latest
 */
export function takeTurn(
  gw: Gateway,
  live: LiveCluster,
  kind: OwnCall,
  charge: Charge,
  timeoutMs: number,
): Promise<() => void> {
  return takeTurnIn(gw, live.turns.of(kind), charge, longestWaitMs(timeoutMs), {
    rate: () => live.compiled.client,
    message: (atMost, seconds) => callLimitMessage(live.compiled.name, NAMES[kind], charge.source, atMost, seconds),
  })
}

/** Leaves time for the call itself. @param timeoutMs for waiting and the call together */
export function longestWaitMs(timeoutMs: number): number {
  return Math.max(timeoutMs / 2, timeoutMs - CALL_MS)
}

/** Varies by kind of turn. */
interface TurnRules {
  /** The current rate. */
  rate(): CallRate
  /** Error message when no turn was granted. @param atMost see `Turn.refused` */
  message(atMost: number | undefined, retryAfterSeconds: number): string
}

/** Clock and random numbers, injected. */
interface TurnWorld {
  readonly clock: Pick<Gateway['clock'], 'monotonic'>
  random(): number
}

class AwaitedTurn extends Turn {
  readonly granted: Turn['granted']
  readonly refused: Turn['refused']

  constructor({ source, weight }: Charge, longestMs: number, granted: Turn['granted'], refused: Turn['refused']) {
    super(source, weight, longestMs)
    this.granted = granted
    this.refused = refused
  }
}

/**
 * Like takeTurn, for turns of any kind.
 * @param longestMs gives up after this wait
 */
export function takeTurnIn(
  world: TurnWorld,
  turns: CallTurns,
  charge: Charge,
  longestMs: number,
  { rate, message }: TurnRules,
): Promise<() => void> {
  const now = (): number => world.clock.monotonic()
  return new Promise((resolve, reject) => {
    const done = (): void => wakeIn(world, rate, turns, turns.done(charge.source, rate(), now()))
    const granted = (): void => {
      clearTimeout(deadline)
      resolve(done)
    }
    const refused = (retryAfterMs: number, atMost: number | undefined): void => {
      clearTimeout(deadline)
      const retryAfterSeconds = spreadRetryAfter(retryAfterMs, world.random())
      reject(new CallLimitError(message(atMost, retryAfterSeconds), retryAfterSeconds))
    }
    const turn = new AwaitedTurn(charge, longestMs, granted, refused)
    const deadline = setTimeout(() => turns.expire(turn, rate()), longestMs).unref()
    wakeIn(world, rate, turns, turns.ask(turn, rate(), now()))
  })
}

/** A timer is needed because no other event occurs when a call becomes due. An earlier time, after `qps` was raised, replaces a later one. */
function wakeIn(world: TurnWorld, rate: () => CallRate, turns: CallTurns, waitMs: number): void {
  if (waitMs === 0) return
  const atMs = world.clock.monotonic() + waitMs
  const before = waking.get(turns)
  if (before !== undefined && before.atMs <= atMs) return
  clearTimeout(before?.timer)
  const timer = setTimeout(() => {
    waking.delete(turns)
    wakeIn(world, rate, turns, turns.advance(rate(), world.clock.monotonic()))
  }, waitMs).unref()
  waking.set(turns, { atMs, timer })
}
