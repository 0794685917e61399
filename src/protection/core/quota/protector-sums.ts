// Sums over PodProtectors (Podseidon's generator/monitor/monitor.go), maintained incrementally, one protector at a time.

import type { PodProtector } from '../../api/pod-protector.ts'

/** Sums over pods in one state. */
interface StateSums {
  /** Protectors whose pods in this state are minAvailable or more. */
  readonly meetsMinAvailable: number
  readonly replicas: number
  /** Fraction of minAvailable that is present, in millionths, capped at all of it, summed over protectors with minAvailable above 0. */
  readonly proportionPpm: number
}

export const POD_STATES = ['created', 'available', 'ready', 'scheduled', 'running'] as const
type CountedState = (typeof POD_STATES)[number]

export interface ProtectorSums {
  readonly workloads: number
  /** With minAvailable above 0. */
  readonly nonZeroWorkloads: number
  readonly minAvailable: number
  readonly estimatedAvailable: number
  readonly latencyMillis: number
  readonly states: Readonly<Record<CountedState, StateSums>>
}

const MILLION = 1_000_000
const NO_STATE: StateSums = { meetsMinAvailable: 0, replicas: 0, proportionPpm: 0 }

export const NO_SUMS: ProtectorSums = {
  workloads: 0,
  nonZeroWorkloads: 0,
  minAvailable: 0,
  estimatedAvailable: 0,
  latencyMillis: 0,
  states: { created: NO_STATE, available: NO_STATE, ready: NO_STATE, scheduled: NO_STATE, running: NO_STATE },
}

/** The contribution of one protector. Without a status it has no pods. */
export function sumsOf({ spec: { minAvailable }, status }: PodProtector): ProtectorSums {
  const summary = status?.summary
  const state = (replicas = 0): StateSums => ({
    meetsMinAvailable: replicas >= minAvailable ? 1 : 0,
    replicas,
    proportionPpm: minAvailable > 0 ? Math.min(MILLION, Math.round((replicas * MILLION) / minAvailable)) : 0,
  })
  return {
    workloads: 1,
    nonZeroWorkloads: minAvailable > 0 ? 1 : 0,
    minAvailable,
    estimatedAvailable: summary?.estimatedAvailableReplicas ?? 0,
    latencyMillis: summary?.maxLatencyMillis ?? 0,
    states: {
      created: state(summary?.totalReplicas),
      available: state(summary?.aggregatedAvailableReplicas),
      ready: state(summary?.aggregatedReady),
      scheduled: state(summary?.aggregatedScheduled),
      running: state(summary?.aggregatedRunning),
    },
  }
}

/** Adds `one` to `sums`, or subtracts it. */
export function added(sums: ProtectorSums, one: ProtectorSums, sign: 1 | -1): ProtectorSums {
  const state = (name: CountedState): StateSums => ({
    meetsMinAvailable: sums.states[name].meetsMinAvailable + sign * one.states[name].meetsMinAvailable,
    replicas: sums.states[name].replicas + sign * one.states[name].replicas,
    proportionPpm: sums.states[name].proportionPpm + sign * one.states[name].proportionPpm,
  })
  return {
    workloads: sums.workloads + sign * one.workloads,
    nonZeroWorkloads: sums.nonZeroWorkloads + sign * one.nonZeroWorkloads,
    minAvailable: sums.minAvailable + sign * one.minAvailable,
    estimatedAvailable: sums.estimatedAvailable + sign * one.estimatedAvailable,
    latencyMillis: sums.latencyMillis + sign * one.latencyMillis,
    states: {
      created: state('created'),
      available: state('available'),
      ready: state('ready'),
      scheduled: state('scheduled'),
      running: state('running'),
    },
  }
}

/**
 * The gauges `generator_monitor_workloads_*`, without that prefix. Without workloads, proportions are 1, never NaN, so that no alert fires
 * when nothing is missing.
 */
export function monitorGauges(sums: ProtectorSums): ReadonlyMap<string, number> {
  const gauges = new Map<string, number>([
    ['num_workloads', sums.workloads],
    ['num_non_zero_workloads', sums.nonZeroWorkloads],
    ['min_available', sums.minAvailable],
    ['current_estimated_available_replicas', sums.estimatedAvailable],
    ['sum_latency_millis', sums.latencyMillis],
    ['total_outstanding_history', sums.states.available.replicas - sums.estimatedAvailable],
  ])
  for (const name of POD_STATES) {
    const { meetsMinAvailable, replicas, proportionPpm } = sums.states[name]
    gauges.set(`num_${name}_workloads`, meetsMinAvailable)
    gauges.set(`proportion_${name}_workloads`, ratio(meetsMinAvailable, sums.workloads, 1))
    gauges.set(`current_aggregated_${name}_pods`, replicas)
    gauges.set(`proportion_${name}_pods`, ratio(replicas, sums.minAvailable, 1))
    gauges.set(`sum_${name}_proportion`, proportionPpm / MILLION)
    gauges.set(`avg_${name}_proportion_ppm`, Math.round(ratio(proportionPpm, sums.nonZeroWorkloads, MILLION)))
  }
  return gauges
}

function ratio(part: number, whole: number, ofNothing: number): number {
  return whole > 0 ? part / whole : ofNothing
}
