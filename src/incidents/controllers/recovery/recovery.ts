// Implements spec.degrade.recovery: the leader checks each recovering cluster about once a second, and sets the next mode when the
// rule says so (incidents/core/recovery.ts). The state for a new leader is in the object: the mode, and where the recovery began.

import { writtenMode } from '../../../gateway/api/upstream-cluster/degrade-modes.ts'
import type { DegradeStatus } from '../../../gateway/api/upstream-cluster/status.ts'
import type { DegradeBefore } from '../../../gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../../gateway/api/upstream-cluster-kind.ts'
import type { CompiledRecovery } from '../../../gateway/core/cluster/compiled-cluster.ts'
import type { LiveCluster } from '../../../gateway/state/clusters.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { formatDuration } from '../../../kit/core/text/duration.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { Controller } from '../../../kube/controllers/kernel/controller.ts'
import type { Leading } from '../../../kube/controllers/kernel/leadership.ts'
import type { StatusTransition } from '../../../kube/core/status-transition.ts'
import type { ClusterHealth, NodesSeen } from '../../api/cluster-health.ts'
import {
  afterStep,
  type RecoveryDecision,
  type RecoveryState,
  resumeRecovery,
  stepRecovery,
} from '../../core/recovery.ts'
import type { RecoveryFacts } from '../../core/recovery-checks.ts'
import {
  blockedStatus,
  isUrgent,
  type RecoveryStep,
  RecoveryWriter,
  recoveryStatus,
  statusPatch,
} from './recovery-writer.ts'
import { readSwitchedCluster, type SwitchedCluster, slimCluster } from './switched-cluster.ts'

interface DegradeRecoveryDeps {
  readonly client: ObjectClient
  /** Unique among the replicas. */
  readonly replica: string
  readonly leadership: Leading
  /** The main thread's clusters. */
  readonly clusters: { get(name: string): LiveCluster | undefined }
  readonly health: ClusterHealth
  readonly clock: Clock
  readonly log: Logger
  /** Between two checks. Default 1 s. */
  readonly lookMs?: number
}

const LOOK_MS = 1_000
/** Between two writes of a status in which only numbers have changed. */
const QUIET_WRITE_MS = 5_000
/** How long the best share of Ready nodes counts. */
const READY_WINDOW_MS = 600_000

export function startDegradeRecovery(deps: DegradeRecoveryDeps): RecoveryController {
  return new RecoveryController(deps)
}

/** This process's state of one cluster, beyond its object. */
interface Known {
  seen: SwitchedCluster
  state: RecoveryState | undefined
  /** The current step of the recovery; '' = unknown. */
  step: string
  /** When the step began, milliseconds since the epoch. */
  stepSinceMs: number
  /** Since when its checks hold: on both clocks, so that the time written doesn't fluctuate. */
  holding: { readonly sinceMs: number; readonly wallMs: number } | undefined
  statusWrittenMs: number
  /** The version for which the mode was last written; undefined = none. No decision until the resulting version is seen. */
  actedOn: string | undefined
}

export class RecoveryController {
  readonly #deps: DegradeRecoveryDeps
  readonly #writer: RecoveryWriter
  readonly #readyBefore = new ReadyBefore()
  readonly #controller: Controller<Known>

  constructor(deps: DegradeRecoveryDeps) {
    this.#deps = deps
    this.#writer = new RecoveryWriter(deps)
    this.#controller = new Controller<Known>({
      ...deps,
      name: 'the recovery by steps',
      kind: UPSTREAM_CLUSTERS,
      choice: { transform: slimCluster },
      keep: keepSwitch,
      onGone: (_, name) => this.#readyBefore.forget(name),
      everyMs: deps.lookMs ?? LOOK_MS,
      reconcile: (name, known) => {
        this.#remember(name, known)
        return this.#reconcile(name, known)
      },
      pause: (name, known) => {
        this.#remember(name, known)
        known.state = undefined
      },
      onFault: (cluster, why) => deps.log.warn('a recovery cannot write its cluster', { cluster, why }),
    })
  }

  async stop(): Promise<void> {
    await this.#controller.stop()
    await this.#writer.stop()
  }

  #remember(name: string, { seen }: Known): void {
    if (seen.mode !== 'Off') return
    const { health, clock } = this.#deps
    const nodes = health.nodes(name)
    if (nodes !== undefined) this.#readyBefore.record(name, nodes, clock.monotonic())
  }

  // === one cluster ===

  #reconcile(name: string, known: Known): Promise<void> | undefined {
    const { seen } = known
    if (known.actedOn === seen.resourceVersion) return undefined
    if (!seen.recovers) return this.#withoutRecovery(name, known)
    const { clock } = this.#deps
    const expired = seen.expiresAtMs !== 0 && clock.now() >= seen.expiresAtMs
    const goal = expired ? undefined : seen.beforeAt(clock.now())
    if (seen.mode === 'Off' || expired) {
      const reason = expired ? `${seen.mode} has expired` : 'everything is let through'
      known.state = undefined
      return this.#writer.finish(seen, reason, undefined)
    }
    const blocked = this.#blockedBy(name, seen)
    const { mode } = seen
    if (blocked !== '' || mode === undefined) {
      known.state = undefined
      return this.#writeStatus(known, { ...this.#before(name, seen), ...blockedStatus(seen, blocked, clock.now()) })
    }
    const options = this.#deps.clusters.get(name)?.compiled.degrade.recovery
    if (options === undefined) return undefined
    const nowMs = clock.monotonic()
    const before =
      known.state ?? resumeRecovery(mode, writtenMode(seen.status.recovery?.startedFrom ?? mode) ?? mode, nowMs)
    if (known.step !== mode || known.state === undefined) known.stepSinceMs = sinceOf(seen, mode, clock.now())
    known.step = mode
    const base = this.#before(name, seen)
    const facts = this.#facts(name, seen, base.readyNodesBefore)
    const decision = stepRecovery(before, mode, facts, { ...options, goal: goal?.mode ?? 'Off' }, nowMs)
    known.state = decision.state
    if (decision.action.kind === 'done') return this.#finish(known, goal)
    known.holding = holdingOf(known, decision.state, clock)
    return this.#act(known, decision, options, base)
  }

  /** The inputs of a recovery, from the live state of the main thread. */
  #facts(name: string, { refused }: SwitchedCluster, readyNodesBefore: number | undefined): RecoveryFacts {
    const { clusters, health, clock, replica: own } = this.#deps
    // Disruptive requests that the replicas have refused in the last minute.
    let refusedDisruptive = health.refusedDisruptive(name)
    for (const [replica, count] of refused) if (replica !== own) refusedDisruptive += count
    const nowMs = clock.monotonic()
    const live = clusters.get(name)
    const upstream = health.upstream(name)
    const nodes = health.nodes(name)
    return {
      hasServers: live?.compiled.federation === undefined,
      endpoints: live === undefined ? undefined : endpointsOf(live, nowMs),
      upstream: upstream && { ...upstream, ageMs: nowMs - upstream.observedAtMs },
      nodes: nodes && { ...nodes, ageMs: nowMs - nodes.observedAtMs },
      readyNodesBefore,
      refusedDisruptive,
    }
  }

  /** Why no decision can be made now; '' = it can. */
  #blockedBy(name: string, { mode, deniesAll }: SwitchedCluster): string {
    if (mode === undefined) return 'the mode is not known to this version'
    if (deniesAll) return 'the annotation DenyAllRequests=true freezes the cluster whatever the mode: remove it'
    const inForce = this.#deps.clusters.get(name)?.compiled.degrade
    if (inForce === undefined) return 'no version of the object is in force'
    if (inForce.mode !== mode || inForce.recovery === undefined) return `${mode} is not in force on the leader yet`
    return ''
  }

  /** The share of Ready nodes before the incident is stored in the object. */
  #before(name: string, { status }: SwitchedCluster): Pick<DegradeStatus, 'readyNodesBefore'> {
    const readyNodesBefore = status.readyNodesBefore ?? this.#readyBefore.of(name)
    return readyNodesBefore === undefined ? {} : { readyNodesBefore }
  }

  /** The recovery was cancelled, never began, or the incident is over. */
  #withoutRecovery(name: string, known: Known): Promise<void> | undefined {
    known.state = undefined
    const { seen } = known
    const wanted = seen.mode === 'Off' ? {} : this.#before(name, seen)
    const ended = seen.status.recovery
    const told: StatusTransition | undefined = ended && {
      type: 'Normal',
      reason: 'RecoveryEnded',
      message: `the recovery from ${ended.startedFrom} was ended by hand; the mode is ${seen.mode ?? 'not known'}`,
    }
    return this.#writeStatus(known, wanted, told)
  }

  #finish(known: Known, goal: DegradeBefore | undefined): Promise<void> {
    const { seen } = known
    known.state = undefined
    known.actedOn = seen.resourceVersion
    const finished = this.#writer.finish(seen, `${seen.mode} is what applied before`, goal)
    return finished.catch((error: unknown) => {
      known.actedOn = undefined
      throw error
    })
  }

  #act(
    known: Known,
    decision: RecoveryDecision,
    options: CompiledRecovery,
    base: Pick<DegradeStatus, 'readyNodesBefore'>,
  ): Promise<void> | undefined {
    const { seen } = known
    const { action } = decision
    if (action.kind === 'climb' || action.kind === 'goBack') return this.#step(known, decision, action)
    const recovery = recoveryStatus(decision, known.stepSinceMs, known.holding?.wallMs)
    const { hold, ramp } = { hold: formatDuration(options.holdMs), ramp: formatDuration(options.rampMs) }
    const begun: StatusTransition | undefined =
      seen.status.recovery === undefined
        ? {
            type: 'Normal',
            reason: 'RecoveryStarted',
            message: `from ${decision.state.step}, a step when its checks have held for ${hold}, ramp ${ramp}`,
          }
        : undefined
    return this.#writeStatus(known, { ...base, recovery }, begun)
  }

  async #step(known: Known, { state }: RecoveryDecision, action: RecoveryStep): Promise<void> {
    const { seen } = known
    await this.#writer.setMode(seen, action)
    known.actedOn = seen.resourceVersion
    known.state = afterStep(state, action.to, this.#deps.clock.monotonic())
  }

  #writeStatus(known: Known, wanted: DegradeStatus, told?: StatusTransition): Promise<void> | undefined {
    const { seen } = known
    const patch = statusPatch(seen.status, wanted)
    if (patch === undefined) return undefined
    const nowMs = this.#deps.clock.monotonic()
    if (!isUrgent(seen.status, wanted) && nowMs - known.statusWrittenMs < QUIET_WRITE_MS) return undefined
    known.statusWrittenMs = nowMs
    return this.#writer.status(seen, wanted, told)
  }
}

function keepSwitch(object: JsonObject, known: Known | undefined): Known {
  const seen = readSwitchedCluster(object)
  if (known !== undefined) return Object.assign(known, { seen })
  return {
    seen,
    state: undefined,
    step: '',
    stepSinceMs: 0,
    holding: undefined,
    statusWrittenMs: Number.NEGATIVE_INFINITY,
    actedOn: undefined,
  }
}

/** From the status of an earlier leader, for the same step. */
function sinceOf({ status: { recovery } }: SwitchedCluster, mode: string, nowMs: number): number {
  const sinceMs = recovery?.step === mode ? Date.parse(recovery.since) : Number.NaN
  return Number.isNaN(sinceMs) ? nowMs : sinceMs
}

function holdingOf({ holding }: Known, { holdingSinceMs }: RecoveryState, clock: Clock): Known['holding'] {
  if (holdingSinceMs === undefined) return undefined
  if (holding?.sinceMs === holdingSinceMs) return holding
  return { sinceMs: holdingSinceMs, wallMs: clock.now() - (clock.monotonic() - holdingSinceMs) }
}

interface ReadyShares {
  /** The best of this window, and of the previous one. Per cent */
  now: number
  before: number
  beganMs: number
}

/**
 * The share of Ready nodes of each cluster while its switch is off: the target of a recovery. The best of the last minutes,
 * because the switch is thrown when nodes are already being lost.
 */
class ReadyBefore {
  readonly #shares = new Map<string, ReadyShares>()

  /** @param nowMs monotonic milliseconds */
  record(cluster: string, { ready, total, complete }: NodesSeen, nowMs: number): void {
    if (!complete || total === 0) return
    const percent = Math.floor((ready * 100) / total)
    const known = this.#shares.get(cluster)
    if (known === undefined || nowMs - known.beganMs >= 2 * READY_WINDOW_MS) {
      this.#shares.set(cluster, { now: percent, before: 0, beganMs: nowMs })
    } else if (nowMs - known.beganMs >= READY_WINDOW_MS) {
      this.#shares.set(cluster, { now: percent, before: known.now, beganMs: nowMs })
    } else known.now = Math.max(known.now, percent)
  }

  /** In per cent; undefined = not observed by this process. */
  of(cluster: string): number | undefined {
    const known = this.#shares.get(cluster)
    return known === undefined ? undefined : Math.max(known.now, known.before)
  }

  forget(cluster: string): void {
    this.#shares.delete(cluster)
  }
}

/** undefined while an endpoint has not been probed yet and none takes requests. */
function endpointsOf({ endpoints }: LiveCluster, nowMs: number): RecoveryFacts['endpoints'] {
  const enabled = endpoints.describe(nowMs).filter(({ url }) => endpoints.byUrl(url)?.enabled === true)
  const available = enabled.filter(({ available, state }) => available && state === 'healthy').length
  if (available === 0 && enabled.some(({ state }) => state === 'unknown')) return undefined
  return { available, enabled: enabled.length }
}
