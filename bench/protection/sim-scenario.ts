// What a seed means: the size of the world, its faults, and the deletions that are asked for.

import type { HealthCriterion } from '../../src/protection/api/protection.ts'
import { SimRandom } from './sim-queue.ts'

export interface SimProtector {
  readonly key: string
  /** Which of two workloads: 'all' selects both, else one. */
  readonly selects: 'all' | 'a' | 'b'
  readonly minAvailable: number
  readonly minReadySeconds: number
  readonly compactThreshold: number
  readonly maxConcurrentLag: number
}

export interface SimWave {
  readonly atMs: number
  readonly size: number
  readonly spanMs: number
  /** undefined = every cell. */
  readonly cell: number | undefined
  /** Chances of a deletion to be so. */
  readonly viaWebhook: number
  readonly viaBoth: number
  readonly eviction: number
  readonly refusedByPDB: number
  readonly refusedByOthers: number
  readonly samePod: number
  readonly answerLost: number
  readonly retries: number
}

export interface SimStall {
  readonly atMs: number
  readonly untilMs: number
  /** It ends with a new list; else what was held back comes at once. */
  readonly relist: boolean
}

export interface SimClockStep {
  readonly atMs: number
  readonly byMs: number
}

export interface SimCell {
  readonly podsA: number
  readonly podsB: number
  readonly lagMs: number
  readonly lagBurst: number
  readonly stalls: readonly SimStall[]
  readonly aggregatorRestartsMs: readonly number[]
  readonly aggregatorSkewMs: number
  readonly kubeletSkewMs: number
  readonly apiserverSkewMs: number
  /** When and by how much the clock is set, once. */
  readonly apiserverStep: SimClockStep
  readonly kubeletStep: SimClockStep
  readonly graceMs: number
}

export interface SimReplica {
  readonly skewMs: number
  readonly watchLagMs: number
  readonly restartsMs: readonly number[]
}

export interface Scenario {
  readonly seed: number
  readonly cells: readonly SimCell[]
  readonly replicas: readonly SimReplica[]
  readonly protectors: readonly SimProtector[]
  readonly waves: readonly SimWave[]
  readonly criterion: HealthCriterion
  /** Pods become unready by themselves: these losses are not deletions. */
  readonly flapping: boolean
  /** Deleted pods are replaced; else the workload only shrinks. */
  readonly replaces: boolean
  readonly readyAfterMs: number
  readonly aggregationRateMs: number
  readonly coreLatencyMs: number
  readonly upstreamLatencyMs: number
  readonly upstreamSlow: number
  readonly endMs: number
}

const WAVES_END_MS = 60_000

/** What holds for all worlds of a campaign. */
export interface Campaign {
  /** Each clock is ahead or behind by as much, at most: of gateways, API servers, and kubelets. */
  readonly maxSkewMs: number
  /** Clocks of API servers and kubelets are set by as much, while pods are deleted. */
  readonly steps: boolean
  /** Histories and aggregation as Podseidon has them by default: 100 single buckets, no limit of lag, 5 s. */
  readonly podseidonDefaults: boolean
}

export const DEFAULT_CAMPAIGN: Campaign = { maxSkewMs: 30_000, steps: false, podseidonDefaults: false }
/** util/defaultconfig/options.go at 9a84add. */
const PODSEIDON = { compactThreshold: 100, maxConcurrentLag: 0, aggregationRateMs: 5_000 }

export function scenarioOf(
  seed: number,
  { maxSkewMs, steps, podseidonDefaults }: Campaign = DEFAULT_CAMPAIGN,
): Scenario {
  const scenario = drawScenario(seed, maxSkewMs, steps ? maxSkewMs : 0)
  if (!podseidonDefaults) return scenario
  const { aggregationRateMs, ...history } = PODSEIDON
  const protectors = scenario.protectors.map((protector) => ({ ...protector, ...history }))
  return { ...scenario, aggregationRateMs, protectors }
}

function drawScenario(seed: number, maxSkewMs: number, maxStepMs: number): Scenario {
  const random = new SimRandom(seed, 'scenario')
  const skews = new SimRandom(seed, 'clocks of API servers')
  const cells = Array.from({ length: random.integer(1, 3) }, () => cellOf(random, skews, maxSkewMs, maxStepMs))
  const waves = Array.from({ length: random.integer(1, 4) }, () => waveOf(random, cells.length))
  return {
    seed,
    cells,
    replicas: Array.from({ length: random.integer(1, 3) }, () => ({
      skewMs: random.between(-maxSkewMs, maxSkewMs),
      watchLagMs: random.pick([5, 20, 200, 2_000]),
      restartsMs: random.chance(0.3) ? [random.between(1_000, WAVES_END_MS)] : [],
    })),
    protectors: protectorsOf(random, cells),
    waves,
    criterion: random.chance(0.85) ? 'Available' : random.pick(['Ready', 'Running', 'Scheduled']),
    flapping: random.chance(0.15),
    replaces: random.chance(0.7),
    readyAfterMs: random.pick([500, 2_000, 10_000]),
    aggregationRateMs: random.pick([1_000, 1_000, 200, 5_000]),
    coreLatencyMs: random.pick([2, 10, 100]),
    upstreamLatencyMs: random.pick([5, 30, 300]),
    upstreamSlow: random.pick([0, 0.02, 0.2]),
    endMs: WAVES_END_MS + 240_000,
  }
}

function cellOf(random: SimRandom, skews: SimRandom, maxSkewMs: number, maxStepMs: number): SimCell {
  const step = (): SimClockStep => {
    return { atMs: skews.between(1_000, WAVES_END_MS), byMs: skews.between(-maxStepMs, maxStepMs) }
  }
  const size = random.pick([3, 5, 10, 10, 40])
  const stalls: SimStall[] = []
  if (random.chance(0.35)) {
    const atMs = random.between(0, WAVES_END_MS)
    stalls.push({ atMs, untilMs: atMs + random.between(2_000, 60_000), relist: random.chance(0.5) })
  }
  return {
    podsA: random.integer(1, size),
    podsB: random.chance(0.3) ? random.integer(1, size) : 0,
    lagMs: random.pick([5, 50, 500, 2_000]),
    lagBurst: random.pick([0, 0, 0.1]),
    stalls,
    aggregatorRestartsMs: random.chance(0.25) ? [random.between(1_000, WAVES_END_MS)] : [],
    aggregatorSkewMs: random.between(-maxSkewMs, maxSkewMs),
    kubeletSkewMs: random.between(-maxSkewMs, maxSkewMs),
    apiserverSkewMs: skews.between(-maxSkewMs, maxSkewMs),
    apiserverStep: step(),
    kubeletStep: step(),
    graceMs: random.pick([0, 1_000, 30_000]),
  }
}

function protectorsOf(random: SimRandom, cells: readonly SimCell[]): SimProtector[] {
  const podsA = cells.reduce((sum, { podsA: pods }) => sum + pods, 0)
  const podsB = cells.reduce((sum, { podsB: pods }) => sum + pods, 0)
  const minReadySeconds = random.chance(0.6) ? 0 : random.integer(1, 10)
  const protector = (key: string, selects: SimProtector['selects'], pods: number): SimProtector => ({
    key: `default/${key}`,
    selects,
    minAvailable: Math.max(0, pods - random.pick([1, 1, 2, Math.ceil(pods / 4), Math.ceil(pods / 2)])),
    minReadySeconds: random.chance(0.8) ? minReadySeconds : random.integer(0, 10),
    compactThreshold: random.pick([100, 100, 1, 2, 5]),
    maxConcurrentLag: random.pick([0, 0, 0, 1, 5]),
  })
  const protectors = [protector('web', 'a', podsA)]
  if (podsB > 0 && random.chance(0.7)) protectors.push(protector('other', 'b', podsB))
  if (random.chance(0.25)) protectors.push(protector('all', 'all', podsA + podsB))
  return protectors
}

function waveOf(random: SimRandom, cells: number): SimWave {
  const mode = random.pick(['filter', 'filter', 'webhook', 'both', 'mixed'])
  const size = random.pick([1, 3, 10, 10, 30, 60, 200])
  return {
    atMs: random.between(500, WAVES_END_MS - 5_000),
    size,
    spanMs: random.pick([0, 100, 1_000, 5_000]),
    cell: random.chance(0.5) ? undefined : random.integer(0, cells - 1),
    viaWebhook: mode === 'webhook' ? 1 : mode === 'mixed' ? 0.4 : 0,
    viaBoth: mode === 'both' ? 1 : mode === 'mixed' ? 0.2 : 0,
    eviction: random.pick([0, 0.5, 1]),
    refusedByPDB: random.pick([0, 0, 0.3]),
    refusedByOthers: random.pick([0, 0, 0.2]),
    samePod: random.pick([0, 0.1, 0.5]),
    answerLost: random.pick([0, 0, 0.1]),
    retries: random.pick([0, 0, 2]),
  }
}
