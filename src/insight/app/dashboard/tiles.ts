// A cluster at a glance, from its state in force and its samples.

import { effectiveMode } from '../../../gateway/core/policy/degrade.ts'
import type { LiveCluster } from '../../../gateway/state/clusters.ts'
import { short } from '../../../kit/core/text/figures.ts'
import type { DegradeInForce } from '../../api/overview.ts'
import type { TilePart } from '../../api/parts.ts'
import { clip } from '../../core/dashboard/change-log.ts'
import type { Samples } from './samples.ts'
import type { SwitchedBy } from './switched-by.ts'

export interface TileDeps {
  readonly samples: Pick<Samples, 'of'>
  readonly clock: { now(): number; monotonic(): number }
  switchOf(cluster: string): SwitchedBy
}

export function tileOf(live: LiveCluster, { samples, clock, switchOf }: TileDeps): TilePart {
  const { name } = live.compiled
  const sample = samples.of(name)
  return {
    name,
    labels: live.compiled.labels,
    requestsPerSecond: short(sample?.requests.last ?? 0),
    errorsPerSecond: short(sample?.errors.last ?? 0),
    refusedPerSecond: short(sample?.refused.last ?? 0),
    durations: sample?.durations ?? [],
    inFlight: sample?.totals?.inFlight ?? 0,
    watches: sample?.totals?.watches ?? 0,
    endpoints: endpointCounts(live, clock.monotonic()),
    degrade: degradeOf(live, clock.now(), switchOf(name)),
    credentialFault: clip(live.credentialFault),
    spark: sample?.spark() ?? [],
  }
}

function endpointCounts({ endpoints }: LiveCluster, monotonicMs: number): TilePart['endpoints'] {
  const enabled = endpoints.describe(monotonicMs).filter(({ disabled }) => !disabled)
  // A backup server in reserve is not down.
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
