// One run: the world of a seed, and one algorithm in it.

import { DEFAULT_PROTECTION_SETTINGS } from '../../src/process/api/protection-settings.ts'
import { TrueCell } from './sim-cell.ts'
import { CoreStore } from './sim-core.ts'
import type { SimSettings, World } from './sim-ledger.ts'
import { PodseidonAggregator, PodseidonReplica } from './sim-podseidon.ts'
import { PortcullisAggregator, PortcullisReplica } from './sim-portcullis.ts'
import { runProcesses } from './sim-process.ts'
import { SimQueue } from './sim-queue.ts'
import { SimRequests } from './sim-requests.ts'
import { type Campaign, DEFAULT_CAMPAIGN, scenarioOf } from './sim-scenario.ts'
import { type Needless, Truth } from './sim-truth.ts'

export type Algorithm = 'portcullis' | 'podseidon'

export interface Outcome {
  readonly asked: number
  readonly admitted: number
  readonly refused: number
  readonly overAdmissions: number
  readonly needless: ReadonlyMap<Needless, number>
  readonly ledgerWrites: number
  readonly aggregatorWrites: number
  readonly conflicts: number
  /** One explanation for each over-admission. */
  readonly explanations: readonly string[]
  /** What of the status is wrong at the end, when all was seen; '' = nothing. Meaningful for Portcullis. */
  readonly leftover: string
}

/** What the product ships with; no setting of the simulation's own decides anything. */
export const DEFAULT_SIM_SETTINGS: SimSettings = {
  ...DEFAULT_PROTECTION_SETTINGS,
  versionPrecondition: true,
  releaseWhenGone: false,
  trustsClocks: false,
}

export interface SimulateOptions {
  readonly settings?: SimSettings
  readonly campaign?: Campaign
  print?(line: string): void
}

export async function simulate(seed: number, algorithm: Algorithm, options: SimulateOptions = {}): Promise<Outcome> {
  const { settings = DEFAULT_SIM_SETTINGS, campaign = DEFAULT_CAMPAIGN, print } = options
  const scenario = scenarioOf(seed, campaign)
  const queue = new SimQueue()
  const core = new CoreStore(scenario, queue)
  const world: World = {
    scenario,
    settings,
    queue,
    core,
    trace: (text) => print?.(`${(queue.now / 1_000).toFixed(3).padStart(8)} s  ${text()}`),
  }
  const cells = scenario.cells.map((spec, index) => new TrueCell(index, scenario, queue, spec))
  const truth = new Truth(scenario, cells, queue, core)
  await runProcesses(queue, scenario.endMs, () => {
    const ours = algorithm === 'portcullis'
    const replicas = scenario.replicas.map((_, index) =>
      ours ? new PortcullisReplica(world, index, cells) : new PodseidonReplica(world, index),
    )
    for (const cell of cells) ours ? new PortcullisAggregator(world, cell) : new PodseidonAggregator(world, cell)
    new SimRequests({ world, truth, cells, replicas, webhookOnly: !ours })
  })
  return {
    asked: truth.asked,
    admitted: truth.admitted,
    refused: truth.refused,
    overAdmissions: truth.overAdmissions,
    needless: truth.needlessRefusals(),
    ledgerWrites: core.ledgerWrites,
    aggregatorWrites: core.aggregatorWrites,
    conflicts: core.conflicts,
    explanations: truth.explanations,
    leftover: scenario.flapping ? '' : leftover(core, truth, world),
  }
}

/** When everything was delivered and every reservation is too old, what is estimated is true. */
function leftover(core: CoreStore, truth: Truth, { scenario }: World): string {
  const wrong: string[] = []
  for (const protector of scenario.protectors) {
    const status = core.get(protector.key)?.status
    const buckets = status?.cells.flatMap(({ admissionHistory }) => admissionHistory?.buckets ?? []) ?? []
    if (buckets.length > 0) wrong.push(`${protector.key}: ${buckets.length} buckets`)
    const estimated = status?.summary.estimatedAvailableReplicas ?? 0
    if (scenario.criterion !== 'Available') continue
    const available = truth.count(protector)
    if (estimated !== available) wrong.push(`${protector.key}: ${estimated} estimated, ${available} available`)
  }
  return wrong.join('; ')
}
