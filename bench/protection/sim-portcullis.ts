// Portcullis in simulated time: its own ledger and its own aggregator, as src/gateway/controllers has them, each in a process with a clock
// that is wrong.

import { CellClocks } from '../../src/gateway/core/clocks/cell-clock.ts'
import type { CompiledAggregation } from '../../src/gateway/core/cluster/compiled-cluster.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import type { Logger } from '../../src/kit/api/ports.ts'
import { leadAlone } from '../../src/kube/controllers/kernel/leadership.ts'
import type { PodProtector } from '../../src/protection/api/pod-protector.ts'
import { POD_PROTECTORS } from '../../src/protection/api/pod-protector-kind.ts'
import type { PodFacts, ProtectionRequest, ProtectionVerdict } from '../../src/protection/api/protection.ts'
import { startPodAggregator } from '../../src/protection/controllers/aggregator/pod-aggregator.ts'
import { type ProtectionLedger, startProtectionLedger } from '../../src/protection/controllers/ledger/ledger.ts'
import { ProtectorTable } from '../../src/protection/state/protectors.ts'
import { NO_AGGREGATOR_EVENTS, NO_PROTECTION_EVENTS } from '../../test/harness/objects/ignored-events.ts'
import type { TrueCell } from './sim-cell.ts'
import { probeClocks, SimCellClient, SimCoreClient } from './sim-clients.ts'
import type { SeenVersions } from './sim-core.ts'
import type { SimReplica, SimVerdict, World } from './sim-ledger.ts'
import { SimProcess } from './sim-process.ts'
import { SimRandom } from './sim-queue.ts'

const silent: Logger = { debug: nothing, info: nothing, warn: nothing, error: bug }

function nothing(): void {}

/** Refusals are no errors: what is logged as one is a bug. */
function bug(message: string, fields?: Record<string, unknown>): never {
  throw new Error(message, { cause: fields?.['error'] })
}

export class PortcullisReplica implements SimReplica {
  incarnation = 0
  up = true
  readonly #world: World
  readonly #index: number
  readonly #cells: readonly TrueCell[]
  #client: SimCoreClient | undefined
  #process: SimProcess | undefined
  #ledger: ProtectionLedger | undefined

  constructor(world: World, index: number, cells: readonly TrueCell[]) {
    this.#world = world
    this.#index = index
    this.#cells = cells
    this.#start()
    for (const atMs of world.scenario.replicas[index]?.restartsMs ?? []) world.queue.at(atMs, () => this.#crash())
  }

  #start(): void {
    const { scenario, settings, queue, core } = this.#world
    const { skewMs = 0, watchLagMs = 0 } = scenario.replicas[this.#index] ?? {}
    const random = (purpose: string): SimRandom =>
      new SimRandom(scenario.seed, `replica ${purpose} ${this.#index} ${this.incarnation}`)
    const process = new SimProcess(queue, skewMs)
    const client = new SimCoreClient(core, process, watchLagMs, random('watch'))
    const clocks = new CellClocks(settings.clockSkewMs)
    const jitter = random('')
    const { clock } = process
    process.run(() => {
      this.#ledger = startProtectionLedger({
        client,
        settings,
        clock,
        clocks,
        random: () => jitter.next(),
        log: silent,
        events: NO_PROTECTION_EVENTS,
      })
    })
    this.#process = process
    this.#client = client
    for (const cell of this.#cells) probeClocks(clocks, cell, process, queue, random(cell.id), settings.trustsClocks)
  }

  #crash(): void {
    const { queue, trace, scenario } = this.#world
    trace(() => `replica ${this.#index} crashes`)
    this.#process?.crash()
    this.up = false
    this.incarnation++
    const random = new SimRandom(scenario.seed, `replica restart ${this.#index} ${this.incarnation}`)
    queue.after(random.between(500, 5_000), () => {
      this.up = true
      this.#start()
    })
  }

  review(cell: string, pod: PodFacts, timeoutMs: number, done: (verdict: SimVerdict) => void): void {
    const request: ProtectionRequest = {
      cell,
      cause: 'DeletePod',
      via: 'filter',
      pod,
      criterion: undefined,
      user: '',
      dryRun: false,
      shadow: false,
      timeoutMs,
    }
    const [process, ledger] = [this.#process, this.#ledger]
    process?.run(() => {
      void ledger?.review([request]).then(([verdict]) => {
        // The next thing of the world, after everything that this one led to.
        if (verdict !== undefined) process.after(0, () => done(this.#verdictOf(request, verdict)))
      })
    })
  }

  #verdictOf({ pod: { uid } }: ProtectionRequest, verdict: ProtectionVerdict): SimVerdict {
    const { admitted, status, message, freePass, reservation, protector } = verdict
    const seen = new Map<string, SeenVersions>()
    for (const { namespace, name, startTime } of reservation?.holds ?? []) {
      const shown = this.#client?.shown.get(`${namespace}/${name} ${uid} ${startTime}`)
      if (shown !== undefined) seen.set(`${namespace}/${name}`, shown)
    }
    const refusing = this.#ledger?.protectors.get(protector)?.protector
    const [process, ledger] = [this.#process, this.#ledger]
    return {
      outcome: admitted ? 'admitted' : status === 'Error' ? 'error' : 'refused',
      reason: `${status} ${message}`,
      limited: status === 'RetryAdvised' && hasQuota(refusing),
      free: freePass,
      seen,
      release: () => {
        if (reservation !== undefined) process?.run(() => ledger?.release([reservation]))
      },
    }
  }
}

/** Quota there was; too many deletions are not seen yet. */
function hasQuota(protector: PodProtector | undefined): boolean {
  const { spec, status } = protector ?? {}
  return (status?.summary.estimatedAvailableReplicas ?? 0) > (spec?.minAvailable ?? 0)
}

const AGGREGATION: CompiledAggregation = {
  enabled: true,
  syncTime: 'ResourceVersion',
  syncTimeAnnotation: '',
  podSelector: undefined,
  updateTrigger: undefined,
}

/** The replica that leads for a cell, one after the other. */
export class PortcullisAggregator {
  readonly #world: World
  readonly #cell: TrueCell
  #incarnation = 0
  #process: SimProcess | undefined

  constructor(world: World, cell: TrueCell) {
    this.#world = world
    this.#cell = cell
    this.#start()
    for (const atMs of cell.spec.aggregatorRestartsMs) world.queue.at(atMs, () => this.#crash())
  }

  #start(): void {
    const { scenario, settings, queue, core } = this.#world
    const cell = this.#cell
    const random = (purpose: string): SimRandom =>
      new SimRandom(scenario.seed, `${purpose} ${cell.id} ${this.#incarnation}`)
    const process = new SimProcess(queue, cell.spec.aggregatorSkewMs)
    this.#process = process
    const client = new SimCoreClient(core, process, 20, random('aggregator core'), (object) => this.#counted(object))
    const clocks = new CellClocks(settings.clockSkewMs)
    probeClocks(clocks, cell, process, queue, random('probes'), settings.trustsClocks)
    const protectors = new ProtectorTable()
    const members = [
      { name: cell.id, client: new SimCellClient(cell, process, queue, random('watch')), aggregation: AGGREGATION },
    ]
    const jitter = random('aggregator')
    process.run(() => {
      client.follow(POD_PROTECTORS, '', {
        onReplace: (objects) => protectors.replace(objects),
        onChange: (_type, object: JsonObject) => void protectors.put(object),
        onState: nothing,
      })
      startPodAggregator({
        cell: cell.id,
        core: client,
        members: () => members,
        protectors,
        leadership: leadAlone(silent),
        settings,
        clock: process.clock,
        clocks,
        random: () => jitter.next(),
        log: silent,
        events: NO_AGGREGATOR_EVENTS,
      })
    })
  }

  #counted({ metadata, status }: PodProtector): { cell: string; version: number } {
    const { id } = this.#cell
    const { aggregation } = status?.cells.find(({ cellID }) => cellID === id) ?? {}
    this.#world.trace(() => {
      const { resourceVersion, availableReplicas } = aggregation ?? {}
      return `aggregator of ${id} writes ${metadata.name} at version ${resourceVersion}, ${availableReplicas} available`
    })
    return { cell: id, version: Number(aggregation?.resourceVersion ?? 0) }
  }

  #crash(): void {
    const { queue, trace, scenario } = this.#world
    trace(() => `aggregator of ${this.#cell.id} crashes`)
    this.#process?.crash()
    this.#incarnation++
    const random = new SimRandom(scenario.seed, `aggregator restart ${this.#cell.id} ${this.#incarnation}`)
    queue.after(random.between(1_000, 15_000), () => this.#start())
  }
}
