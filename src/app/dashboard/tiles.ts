// A cluster in one glance, out of its state in force and its samples.

import type { ClusterTile, DegradeInForce } from '../../api/insight/overview.ts'
import { clip } from '../../core/insight/change-log.ts'
import { troublesOf } from '../../core/insight/troubles.ts'
import { effectiveMode } from '../../core/policy/degrade.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import { type ClusterSample, type Samples, short } from './samples.ts'
import type { SwitchedBy } from './switched-by.ts'

export interface TileDeps {
  readonly samples: Pick<Samples, 'of'>
  readonly clock: { now(): number; monotonic(): number }
  switchOf(cluster: string): SwitchedBy
}

/** Without the line of the last half hour, which only those that are shown need. */
export function tileOf(live: LiveCluster, { samples, clock, switchOf }: TileDeps): ClusterTile {
  const { name } = live.compiled
  const sample = samples.of(name)
  const requests = sample?.requests.last ?? 0
  const tile = {
    requestsPerSecond: short(requests),
    errorRatio: ratio(sample?.errors.last ?? 0, requests),
    refusedRatio: ratio(sample?.refused.last ?? 0, requests),
    p50: sample?.p50 ?? null,
    p99: sample?.p99 ?? null,
    inFlight: sample?.totals?.inFlight ?? 0,
    watches: sample?.totals?.watches ?? 0,
    endpoints: endpointCounts(live, clock.monotonic()),
    degrade: degradeOf(live, clock.now(), switchOf(name)),
  }
  return { name, ...tile, troubles: troublesOf(tile, live.credentialFault), spark: [] }
}

export function withSpark(tile: ClusterTile, sample: ClusterSample | undefined): ClusterTile {
  return { ...tile, spark: sample?.spark() ?? [] }
}

/** Requests that end in another step than they began may be more than there were in one. */
function ratio(part: number, all: number): number {
  return all <= 0 ? 0 : short(Math.min(1, part / all))
}

function endpointCounts({ endpoints }: LiveCluster, monotonicMs: number): ClusterTile['endpoints'] {
  const enabled = endpoints.describe(monotonicMs).filter(({ disabled }) => !disabled)
  // A backup that waits for its turn is not down.
  const up = enabled.filter(({ state, ejected }) => state !== 'unhealthy' && !ejected)
  return { up: up.length, all: enabled.length }
}

function degradeOf({ compiled }: LiveCluster, nowMs: number, { by, since }: SwitchedBy): DegradeInForce | null {
  const { degrade } = compiled
  const mode = effectiveMode(degrade, nowMs)
  if (mode === 'Off') return null
  return {
    mode,
    reason: clip(degrade.reason),
    by: clip(by),
    since,
    expiresAt: degrade.expiresAtMs,
    shadow: degrade.shadow,
  }
}
