// Endpoint health: active checks with thresholds, and passive ejection when connections fail. A state machine without a clock.

import type { CompiledHealthCheck } from '../cluster/compiled-cluster.ts'
import { lock, openLockOf, unlock } from '../limits/shared-lock.ts'

/** State of one endpoint. Times are monotonic milliseconds. */
export interface EndpointHealth {
  /** Result of the health checks. 'unknown' until the first one is answered: no requests yet. */
  state: 'unknown' | 'healthy' | 'unhealthy'
  /** Consecutive checks with the same outcome. */
  probeSuccesses: number
  probeFailures: number
  /** Consecutive requests that failed because of the endpoint. */
  consecutiveFailures: number
  /** Number of ejections; each lasts twice as long as the one before. */
  ejections: number
  ejectedAtMs: number
  /** End of the ejection. */
  ejectedUntilMs: number
  lastFailureMs: number
  /** Time of the last response, to 50 ms; negative infinity = never. */
  lastAnswerMs: number
  /** All consecutive failed checks timed out; none got a wrong answer or no connection. */
  onlyLate: boolean
}

/** An endpoint as `ejectable` sees it. */
export interface HealthOfOne {
  readonly health: EndpointHealth
  /** Enabled by the configuration: not disabled, weight above 0. */
  readonly enabled: boolean
}

/** One lost connection is an accident, which a retry handles. Three in a row are not. */
const FAILURES_TO_EJECT = 3
const FIRST_EJECTION_MS = 1_000
const LONGEST_EJECTION_MS = 60_000
/** After this long without a failure, ejections start again at the first length. */
const FORGET_EJECTIONS_MS = 600_000
/** The time of the last response is written at most this often, so that threads do not contend for it. */
const ANSWER_STEP_MS = 50
/** For this long after its last response, an endpoint whose checks only time out gets requests if no other one is available. */
export const LATE_TRUST_MS = 30_000

/** State of one endpoint, shared by all threads. Can be posted to a thread. */
export interface EndpointMemory {
  readonly words: Int32Array<SharedArrayBuffer>
  readonly numbers: Float64Array<SharedArrayBuffer>
  /** Number of threads that count their requests in it: threads 0 to columns - 1. */
  readonly columns: number
}

const STATES: readonly EndpointHealth['state'][] = ['unknown', 'healthy', 'unhealthy']
const STATE = 0
const PROBE_SUCCESSES = 1
const PROBE_FAILURES = 2
const CONSECUTIVE_FAILURES = 3
const EJECTIONS = 4
const LOCK = 5
const ONLY_LATE = 6
/** Each thread's count has its own cache line, behind that of the words above: it changes with every request. */
const LINE_WORDS = 16
const EJECTED_AT = 0
const EJECTED_UNTIL = 1
const LAST_FAILURE = 2
const LAST_ANSWER = 3
const NUMBERS = 4

/** @param columns number of threads that count in it */
export function createEndpointMemory(columns: number): EndpointMemory {
  const memory = {
    words: new Int32Array(new SharedArrayBuffer((columns + 1) * LINE_WORDS * Int32Array.BYTES_PER_ELEMENT)),
    numbers: new Float64Array(new SharedArrayBuffer(NUMBERS * Float64Array.BYTES_PER_ELEMENT)),
    columns,
  }
  memory.numbers[LAST_FAILURE] = Number.NEGATIVE_INFINITY
  memory.numbers[LAST_ANSWER] = Number.NEGATIVE_INFINITY
  return memory
}

/** Health in shared memory, and the requests in flight per thread. */
export class SharedHealth implements EndpointHealth {
  readonly #words: Int32Array<SharedArrayBuffer>
  readonly #numbers: Float64Array<SharedArrayBuffer>
  readonly #columns: number
  readonly #thread: number
  readonly #ownLoad: number

  /** @param thread the one that counts through this object; `memory.columns` = one that counts nothing */
  constructor(memory: EndpointMemory, thread: number) {
    this.#words = memory.words
    this.#numbers = memory.numbers
    this.#columns = memory.columns
    this.#thread = thread
    this.#ownLoad = (thread + 1) * LINE_WORDS
  }

  get state(): EndpointHealth['state'] {
    return STATES[this.#words[STATE] ?? 0] ?? 'unknown'
  }

  set state(state: EndpointHealth['state']) {
    Atomics.store(this.#words, STATE, STATES.indexOf(state))
    Atomics.notify(this.#words, STATE)
  }

  /** Resolves when the first check is in, seen by any thread, or after `withinMs`. */
  checked(withinMs: number): Promise<unknown> {
    return Promise.resolve(Atomics.waitAsync(this.#words, STATE, STATES.indexOf('unknown'), withinMs).value)
  }

  get probeSuccesses(): number {
    return this.#words[PROBE_SUCCESSES] ?? 0
  }

  set probeSuccesses(count: number) {
    this.#words[PROBE_SUCCESSES] = count
  }

  get probeFailures(): number {
    return this.#words[PROBE_FAILURES] ?? 0
  }

  set probeFailures(count: number) {
    this.#words[PROBE_FAILURES] = count
  }

  get consecutiveFailures(): number {
    return this.#words[CONSECUTIVE_FAILURES] ?? 0
  }

  set consecutiveFailures(count: number) {
    this.#words[CONSECUTIVE_FAILURES] = count
  }

  get ejections(): number {
    return this.#words[EJECTIONS] ?? 0
  }

  set ejections(count: number) {
    this.#words[EJECTIONS] = count
  }

  get ejectedAtMs(): number {
    return this.#numbers[EJECTED_AT] ?? 0
  }

  set ejectedAtMs(ms: number) {
    this.#numbers[EJECTED_AT] = ms
  }

  get ejectedUntilMs(): number {
    return this.#numbers[EJECTED_UNTIL] ?? 0
  }

  set ejectedUntilMs(ms: number) {
    this.#numbers[EJECTED_UNTIL] = ms
  }

  get lastFailureMs(): number {
    return this.#numbers[LAST_FAILURE] ?? Number.NEGATIVE_INFINITY
  }

  set lastFailureMs(ms: number) {
    this.#numbers[LAST_FAILURE] = ms
  }

  get lastAnswerMs(): number {
    return this.#numbers[LAST_ANSWER] ?? Number.NEGATIVE_INFINITY
  }

  set lastAnswerMs(ms: number) {
    this.#numbers[LAST_ANSWER] = ms
  }

  get onlyLate(): boolean {
    return this.#words[ONLY_LATE] === 1
  }

  set onlyLate(late: boolean) {
    this.#words[ONLY_LATE] = late ? 1 : 0
  }

  /** Requests in flight, over all threads. */
  get inFlight(): number {
    let total = 0
    for (let i = 1; i <= this.#columns; i++) total += this.#words[i * LINE_WORDS] ?? 0
    return total
  }

  /** A request of this thread starts (+1) or has ended (-1). No other thread writes this count. */
  count(change: 1 | -1): void {
    this.#words[this.#ownLoad] = (this.#words[this.#ownLoad] ?? 0) + change
  }

  /** Excludes others until `unlock`: for atomic changes of several fields. */
  lock(): void {
    lock(this.#words, LOCK, this.#thread)
  }

  unlock(): void {
    unlock(this.#words, LOCK)
  }

  /** Clears the requests in flight of a dead thread. */
  releaseThread(thread: number): void {
    openLockOf(this.#words, LOCK, thread)
    this.#words[(thread + 1) * LINE_WORDS] = 0
  }
}

/**
 * Handles the result of a health check. The first one decides at once, later ones by the thresholds. A timeout does not count if a request
 * was answered meanwhile: the endpoint is slow, and without it no request could be served.
 * @param lateSinceMs when a check that timed out was sent; otherwise undefined
 * @returns whether it counts
 */
export function onProbe(
  health: EndpointHealth,
  ok: boolean,
  check: CompiledHealthCheck,
  lateSinceMs?: number,
): boolean {
  if (!ok && lateSinceMs !== undefined && health.lastAnswerMs >= lateSinceMs) return false
  if (ok) {
    health.probeFailures = 0
    health.probeSuccesses++
    if (health.state === 'unknown' || health.probeSuccesses >= check.healthyThreshold) health.state = 'healthy'
  } else {
    health.probeSuccesses = 0
    health.onlyLate = lateSinceMs !== undefined && (health.probeFailures === 0 || health.onlyLate)
    health.probeFailures++
    if (health.state === 'unknown' || health.probeFailures >= check.unhealthyThreshold) health.state = 'unhealthy'
  }
  return true
}

/** A request failed because of the endpoint: no connection, a lost connection, or a 5xx from the transport. */
export function onFailure(health: EndpointHealth, nowMs: number): void {
  if (nowMs - health.lastFailureMs > FORGET_EJECTIONS_MS) health.ejections = 0
  health.lastFailureMs = nowMs
  health.consecutiveFailures++
  // All requests in flight fail together: that is one ejection. After it, the next failure ejects again at once, because only a success
  // ends the row.
  if (health.consecutiveFailures < FAILURES_TO_EJECT || isEjected(health, nowMs)) return
  health.ejectedAtMs = nowMs
  health.ejectedUntilMs = nowMs + Math.min(LONGEST_EJECTION_MS, FIRST_EJECTION_MS * 2 ** Math.min(health.ejections, 30))
  health.ejections++
}

/**
 * A request got a response head from the endpoint. Does not end an ejection: the request was sent before it.
 * @param code 5xx may come from a proxy in front of the endpoint, or announce that it is about to give up
 */
export function onSuccess(health: EndpointHealth, nowMs: number, code: number): void {
  // Writing on every request would make threads contend for the cache line.
  if (health.consecutiveFailures !== 0) health.consecutiveFailures = 0
  if (code < 500 && nowMs - health.lastAnswerMs >= ANSWER_STEP_MS) health.lastAnswerMs = nowMs
}

/** Unhealthy only because its checks time out, while it has just answered requests: better than no endpoint at all. */
export function isLateOnly(health: EndpointHealth, nowMs: number): boolean {
  return (
    health.state === 'unhealthy' &&
    health.onlyLate &&
    nowMs - health.lastAnswerMs < LATE_TRUST_MS &&
    !isEjected(health, nowMs)
  )
}

/** Whether an ejection is running; `ejectable` decides whether it takes effect. */
export function isEjected(health: EndpointHealth, nowMs: number): boolean {
  return nowMs < health.ejectedUntilMs
}

/**
 * Whether the ejection of `index` takes effect: never for more than half of the enabled endpoints (first ejected first), and never for the
 * last one that could serve. Evaluated when an endpoint is picked, not when it is ejected, because others may have become unhealthy since.
 */
export function ejectable(all: readonly HealthOfOne[], index: number, nowMs: number): boolean {
  const half = Math.floor(all.reduce((count, { enabled }) => count + (enabled ? 1 : 0), 0) / 2)
  if (ejectionRank(all, index, nowMs) >= half) return false
  return all.some(
    ({ health, enabled }, other) =>
      other !== index &&
      enabled &&
      health.state === 'healthy' &&
      !(isEjected(health, nowMs) && ejectionRank(all, other, nowMs) < half),
  )
}

/** Number of enabled endpoints ejected before this one. */
function ejectionRank(all: readonly HealthOfOne[], index: number, nowMs: number): number {
  const mine = all[index]?.health.ejectedAtMs ?? 0
  let rank = 0
  for (const [other, { health, enabled }] of all.entries()) {
    if (other === index || !enabled || !isEjected(health, nowMs)) continue
    if (health.ejectedAtMs < mine || (health.ejectedAtMs === mine && other < index)) rank++
  }
  return rank
}
