// Implements spec.degrade.auto: the leader checks each such cluster about once a second, and sets spec.degrade.mode when the rule says
// so (incidents/core/auto-degrade.ts). The state for a new leader is in the object: the mode, its reason, and status.degrade.auto.

import type {
  AutoDegradeAction,
  AutoDegradeRecovery,
  AutoDegradeStatus,
} from '../../../gateway/api/upstream-cluster/auto-degrade.ts'
import { UPSTREAM_CLUSTERS } from '../../../gateway/api/upstream-cluster-kind.ts'
import { AUTO_DEGRADE_ACTIONS, AUTO_DEGRADE_PHASE, CLUSTER_NODES } from '../../../gateway/metrics/descriptors.ts'
import type { Exposition } from '../../../gateway/metrics/exposition.ts'
import type { LiveCluster } from '../../../gateway/state/clusters.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { Controller } from '../../../kube/controllers/kernel/controller.ts'
import type { Leading } from '../../../kube/controllers/kernel/leadership.ts'
import { patchAsSeen } from '../../../kube/controllers/kernel/object-patch.ts'
import type { ClusterHealth } from '../../api/cluster-health.ts'
import {
  type AutoDegradeEffect,
  type AutoDegradeState,
  autoDegradeStatus,
  done,
  startAutoDegrade,
  stepAutoDegrade,
} from '../../core/auto-degrade.ts'
import { readSwitchedCluster, type SwitchedCluster, slimCluster } from '../recovery/switched-cluster.ts'

const PHASES = ['Normal', 'Suspect', 'Degraded', 'Unknown']

interface AutoDegradeDeps {
  readonly client: ObjectClient
  readonly leadership: Leading
  /** The main thread's clusters. */
  readonly clusters: { get(name: string): LiveCluster | undefined }
  readonly health: ClusterHealth
  readonly clock: Clock
  readonly log: Logger
  /** Between two checks, milliseconds. Default 1 s. */
  readonly lookMs?: number
}

interface AutoDegradeDescription {
  readonly cluster: string
  readonly status: AutoDegradeStatus
  /** How often this replica has taken each action. */
  readonly actions: ReadonlyMap<AutoDegradeAction, number>
}

/** Field manager of spec.degrade.mode. */
const AUTO_DEGRADE_MANAGER = 'portcullis-auto-degrade'
const LOOK_MS = 1_000

/** This process's state of one cluster. */
interface Known {
  seen: SwitchedCluster
  /** undefined = this replica doesn't decide for it. */
  state: AutoDegradeState | undefined
  /** Last status written. */
  status: AutoDegradeStatus | undefined
  readonly actions: Map<AutoDegradeAction, number>
}

export function startAutoDegradeController(deps: AutoDegradeDeps): AutoDegradeController {
  return new AutoDegradeController(deps)
}

export class AutoDegradeController {
  readonly #deps: AutoDegradeDeps
  readonly #controller: Controller<Known>

  constructor(deps: AutoDegradeDeps) {
    this.#deps = deps
    this.#controller = new Controller<Known>({
      ...deps,
      name: 'the automatic degrade switch',
      kind: UPSTREAM_CLUSTERS,
      choice: { transform: slimCluster },
      keep: keepSwitch,
      everyMs: deps.lookMs ?? LOOK_MS,
      reconcile: (name, known) => this.#reconcile(name, known),
      pause: (_, known) => {
        known.state = undefined
      },
      onFault: (cluster, why) => deps.log.warn('the degrade mode could not be changed automatically', { cluster, why }),
    })
  }

  stop(): Promise<void> {
    return this.#controller.stop()
  }

  /** Clusters that this replica decides for; none unless it leads. */
  describe(): readonly AutoDegradeDescription[] {
    return [...this.#controller.objects].flatMap(([cluster, { state, status, actions }]) =>
      state === undefined || status === undefined ? [] : [{ cluster, status, actions }],
    )
  }

  #reconcile(name: string, known: Known): Promise<void> | undefined {
    const { clusters, health, clock } = this.#deps
    const { seen } = known
    const options = clusters.get(name)?.compiled.degrade.auto
    if (!seen.asks || options === undefined) {
      known.state = undefined
      return seen.asks || seen.auto === undefined ? undefined : this.#writeStatus(known, undefined)
    }
    const nowMs = clock.monotonic()
    const { state, effect } = stepAutoDegrade(known.state ?? startAutoDegrade(seen.auto, nowMs), options, {
      nodes: health.nodes(name),
      upstream: health.upstream(name),
      mode: seen.modeAt(clock.now()),
      automatic: seen.automatic,
      recovering: seen.recovers,
      nowMs,
    })
    if (state.action !== undefined && state.action !== known.state?.action) this.#count(known, state.action)
    known.state = state
    if (effect === undefined) return this.#tell(known, state)
    return this.#carryOut(name, known, effect, patchOf(effect, seen, options.recovery, clock.now()))
  }

  #count({ actions }: Known, action: AutoDegradeAction): void {
    actions.set(action, (actions.get(action) ?? 0) + 1)
  }

  /** @param patch of spec.degrade; undefined = no change */
  async #carryOut(name: string, known: Known, effect: AutoDegradeEffect, patch: object | undefined): Promise<void> {
    if (patch !== undefined) {
      await this.#write(known, { spec: { degrade: patch } })
      this.#deps.log.warn('the degrade mode was changed automatically', { cluster: name, ...patch })
    }
    if (known.state === undefined) return
    known.state = done(known.state, effect)
    if (effect.kind === 'enter') this.#count(known, 'Entered')
  }

  #tell(known: Known, state: AutoDegradeState): Promise<void> | undefined {
    const status = autoDegradeStatus(state, known.seen.auto, this.#deps.clock.now())
    known.status = status
    return sameJson(status, known.seen.auto) ? undefined : this.#writeStatus(known, status)
  }

  #writeStatus(known: Known, status: AutoDegradeStatus | undefined): Promise<void> {
    // A merge patch: null removes stale fields.
    const auto = status === undefined ? null : { causes: null, action: null, mode: null, ...status }
    return this.#write(known, { status: { degrade: { auto } } }, 'status')
  }

  /** Guarded by the resourceVersion that was decided on: a concurrent change is not overwritten. */
  async #write(known: Known, part: JsonObject, subresource?: 'status'): Promise<void> {
    const { seen } = known
    const target = { client: this.#deps.client, kind: UPSTREAM_CLUSTERS, fieldManager: AUTO_DEGRADE_MANAGER }
    const answer = await patchAsSeen({ ...target, ...(subresource && { subresource }) }, seen.object, part)
    // A watch event that arrived meanwhile is at least as new.
    if (known.seen === seen) known.seen = readSwitchedCluster(answer)
  }
}

/** Drops objects that neither request it nor have a status of it. */
function keepSwitch(object: JsonObject, known: Known | undefined): Known | undefined {
  const seen = readSwitchedCluster(object)
  if (known !== undefined) return Object.assign(known, { seen })
  if (!seen.asks && seen.auto === undefined) return undefined
  return { seen, state: undefined, status: undefined, actions: new Map() }
}

/** Patch of spec.degrade; undefined = no change. @param nowMs milliseconds since the epoch */
function patchOf(
  effect: AutoDegradeEffect,
  seen: SwitchedCluster,
  recovery: AutoDegradeRecovery,
  nowMs: number,
): object | undefined {
  const { kind, mode, reason } = effect
  // The expiry belonged to another mode; and while upstream is overloaded the rate of Limited must not grow.
  if (kind === 'enter') {
    // What applied before an earlier incident is over.
    const forgotten = seen.remembers && seen.modeAt(nowMs) === 'Off' ? { before: null } : {}
    return { mode, reason, expiresAt: null, since: null, ...forgotten }
  }
  // The mode was set by another client, or a recovery has begun already.
  if (!seen.automatic || seen.recovers || seen.mode !== mode) return undefined
  return { recovery, reason, ...(mode === 'Limited' && { since: metaTime(nowMs) }) }
}

/** One cluster. Labels come from closed sets. */
export interface AutoDegradeSeries {
  readonly cluster: string
  readonly phase: string
  readonly actions: ReadonlyMap<string, number>
  /** Keyed by state; undefined = unknown or stale. */
  readonly nodes: Readonly<Record<string, number>> | undefined
}

/** Metrics of spec.degrade.auto and of the nodes it considers, known only to the leading replica's main thread. */
export function exposeAutoDegrade(into: Exposition, clusters: readonly AutoDegradeSeries[]): void {
  for (const { cluster, phase, actions, nodes } of clusters) {
    for (const one of PHASES) into.addMetric(AUTO_DEGRADE_PHASE, one === phase ? 1 : 0, cluster, one)
    for (const [action, count] of actions) into.addMetric(AUTO_DEGRADE_ACTIONS, count, cluster, action)
    for (const [state, count] of Object.entries(nodes ?? {})) {
      into.addMetric(CLUSTER_NODES, count, cluster, state)
    }
  }
}
