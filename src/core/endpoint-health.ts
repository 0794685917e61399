// Whether an endpoint may take requests: active checks with thresholds, and passive ejection of endpoints whose
// connections fail. A state machine without a clock.

import type { CompiledHealthCheck } from './compiled-cluster.ts'

/** Of one endpoint. Times are monotonic milliseconds. */
export interface EndpointHealth {
  /** What the active checks say. 'unknown' until the first has been answered: no requests yet. */
  state: 'unknown' | 'healthy' | 'unhealthy'
  /** Checks in a row with the same outcome. */
  probeSuccesses: number
  probeFailures: number
  /** Requests in a row that failed for the endpoint's sake. */
  consecutiveFailures: number
  /** Ejections, each twice as long as the one before. */
  ejections: number
  ejectedAtMs: number
  /** Not ejected from then on. */
  ejectedUntilMs: number
  lastFailureMs: number
}

/** An endpoint as `ejectable` sees it. */
export interface HealthOfOne {
  readonly health: EndpointHealth
  /** Takes requests as far as the configuration goes: not disabled, weight above 0. */
  readonly enabled: boolean
}

/** One lost connection is an accident: a retry answers it. Three in a row are not. */
const FAILURES_TO_EJECT = 3
const FIRST_EJECTION_MS = 1_000
const LONGEST_EJECTION_MS = 60_000
/** Without a failure for so long, the next ejection is a first one again. */
const FORGET_EJECTIONS_MS = 600_000

export function createHealth(): EndpointHealth {
  return {
    state: 'unknown',
    probeSuccesses: 0,
    probeFailures: 0,
    consecutiveFailures: 0,
    ejections: 0,
    ejectedAtMs: 0,
    ejectedUntilMs: 0,
    lastFailureMs: Number.NEGATIVE_INFINITY,
  }
}

/** An active check was answered (or not, in time). The first one decides at once, later ones by the thresholds. */
export function onProbe(health: EndpointHealth, ok: boolean, check: CompiledHealthCheck, _nowMs: number): void {
  if (ok) {
    health.probeFailures = 0
    health.probeSuccesses++
    if (health.state === 'unknown' || health.probeSuccesses >= check.healthyThreshold) health.state = 'healthy'
  } else {
    health.probeSuccesses = 0
    health.probeFailures++
    if (health.state === 'unknown' || health.probeFailures >= check.unhealthyThreshold) health.state = 'unhealthy'
  }
}

/** A request failed for the endpoint's sake: no connection, connection lost, or a 5xx made by the transport. */
export function onFailure(health: EndpointHealth, nowMs: number): void {
  if (nowMs - health.lastFailureMs > FORGET_EJECTIONS_MS) health.ejections = 0
  health.lastFailureMs = nowMs
  health.consecutiveFailures++
  // All that were in flight fail together: that is one ejection. After it, the next failure ejects again at once,
  // because only a success ends the row.
  if (health.consecutiveFailures < FAILURES_TO_EJECT || isEjected(health, nowMs)) return
  health.ejectedAtMs = nowMs
  health.ejectedUntilMs = nowMs + Math.min(LONGEST_EJECTION_MS, FIRST_EJECTION_MS * 2 ** Math.min(health.ejections, 30))
  health.ejections++
}

/** A request got a response head from the endpoint. Does not end an ejection: what comes now was sent before it. */
export function onSuccess(health: EndpointHealth, _nowMs: number): void {
  health.consecutiveFailures = 0
}

/** Whether an ejection runs; whether it holds is for `ejectable` to say. */
export function isEjected(health: EndpointHealth, nowMs: number): boolean {
  return nowMs < health.ejectedUntilMs
}

/**
 * Whether the ejection of `index` may hold: never for more than half of the enabled endpoints (the first ejected count),
 * and never for the last one that could serve. Asked when an endpoint is picked, not when it is ejected, because the
 * others can become unhealthy meanwhile.
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

/** How many enabled endpoints were ejected before this one. */
function ejectionRank(all: readonly HealthOfOne[], index: number, nowMs: number): number {
  const mine = all[index]?.health.ejectedAtMs ?? 0
  let rank = 0
  for (const [other, { health, enabled }] of all.entries()) {
    if (other === index || !enabled || !isEjected(health, nowMs)) continue
    if (health.ejectedAtMs < mine || (health.ejectedAtMs === mine && other < index)) rank++
  }
  return rank
}
