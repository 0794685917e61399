// Carries out spec.degrade.auto: the leader looks at each such cluster about once a second, and sets spec.degrade.mode when the rule says
// so (core/incident/auto-degrade.ts). What a new leader needs is in the object: the mode, its reason, and status.degrade.auto.

import { UPSTREAM_CLUSTERS } from '../../api/kinds/scheme.ts'
import { type JsonObject, nameOf } from '../../api/kube/json-object.ts'
import type { ClusterHealth } from '../../api/ports/cluster-health.ts'
import type { FollowEvents, Following, ObjectClient } from '../../api/ports/object-client.ts'
import type { Clock, Logger } from '../../api/ports/ports.ts'
import type {
  AutoDegradeAction,
  AutoDegradeRecovery,
  AutoDegradeStatus,
} from '../../api/upstream-cluster/auto-degrade.ts'
import {
  type AutoDegradeEffect,
  type AutoDegradeState,
  autoDegradeStatus,
  done,
  startAutoDegrade,
  stepAutoDegrade,
} from '../../core/incident/auto-degrade.ts'
import { metaTime } from '../../core/text/meta-time.ts'
import { sameJson } from '../../core/text/same-json.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import { type SwitchWriter, SwitchWrites } from '../degrade/switch-writes.ts'
import { readSwitch, type SwitchedCluster, slimCluster } from '../degrade/switched-cluster.ts'

export interface AutoDegradeDeps {
  readonly client: ObjectClient
  isLeader(): boolean
  /** Of the main thread. */
  readonly clusters: { get(name: string): LiveCluster | undefined }
  readonly health: ClusterHealth
  readonly clock: Clock
  readonly log: Logger
  /** Between two looks, milliseconds. Default 1 s. */
  readonly lookMs?: number
}

export interface AutoDegradeDescription {
  readonly cluster: string
  readonly status: AutoDegradeStatus
  /** How often this replica has taken each action. */
  readonly actions: ReadonlyMap<AutoDegradeAction, number>
}

export interface AutoDegradeController {
  /** Of the clusters that this replica decides for; none when it does not lead. */
  describe(): readonly AutoDegradeDescription[]
  stop(): Promise<void>
}

/** The owner of spec.degrade.mode, for managedFields. */
const AUTO_DEGRADE_MANAGER = 'portcullis-auto-degrade'
const LOOK_MS = 1_000

/** What this process knows of one cluster. */
interface Known extends SwitchWriter {
  seen: SwitchedCluster
  /** undefined = this replica does not decide for it. */
  state: AutoDegradeState | undefined
  /** As it was written last. */
  status: AutoDegradeStatus | undefined
  readonly actions: Map<AutoDegradeAction, number>
}

export function startAutoDegradeController(deps: AutoDegradeDeps): AutoDegradeController {
  const controller = new Controller(deps)
  controller.start()
  return controller
}

class Controller implements AutoDegradeController, FollowEvents {
  readonly #deps: AutoDegradeDeps
  readonly #known = new Map<string, Known>()
  readonly #writes: SwitchWrites
  #following: Following | undefined
  #timer: NodeJS.Timeout | undefined
  /** What is known of the objects is what the API server has. */
  #current = false
  #stopped = false

  constructor(deps: AutoDegradeDeps) {
    this.#deps = deps
    this.#writes = new SwitchWrites(deps.log, 'the degrade mode could not be changed automatically')
  }

  start(): void {
    this.#following = this.#deps.client.follow(UPSTREAM_CLUSTERS, '', this, { transform: slimCluster })
    this.#timer = setInterval(() => this.#look(), this.#deps.lookMs ?? LOOK_MS)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearInterval(this.#timer)
    await this.#following?.stop()
    await this.#writes.ended()
  }

  describe(): readonly AutoDegradeDescription[] {
    return [...this.#known].flatMap(([cluster, { state, status, actions }]) =>
      state === undefined || status === undefined ? [] : [{ cluster, status, actions }],
    )
  }

  onReplace(objects: readonly JsonObject[]): void {
    const names = new Set(objects.map(nameOf))
    for (const name of this.#known.keys()) if (!names.has(name)) this.#known.delete(name)
    for (const object of objects) this.#learn(object)
  }

  onChange(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: JsonObject): void {
    if (type === 'DELETED') this.#known.delete(nameOf(object))
    else this.#learn(object)
  }

  onState(current: boolean): void {
    this.#current = current
  }

  /** Objects that neither ask for it nor say anything of it are not kept. */
  #learn(object: JsonObject): void {
    const name = nameOf(object)
    const seen = readSwitch(object)
    // Deleted and created again while nobody listened.
    if (this.#known.get(name)?.seen.uid !== seen.uid) this.#known.delete(name)
    const known = this.#known.get(name)
    if (known !== undefined) known.seen = seen
    else if (seen.asks || seen.auto !== undefined) {
      const fresh = { state: undefined, status: undefined, writing: false, fault: '', actions: new Map() }
      this.#known.set(name, { seen, ...fresh })
    }
  }

  /** While the API server is away nothing is decided: somebody may have changed the mode there. */
  #look(): void {
    const leads = this.#deps.isLeader() && this.#current && !this.#stopped
    for (const [name, known] of this.#known) {
      if (!leads) known.state = undefined
      else if (!known.writing) this.#turn(name, known)
    }
  }

  // === one cluster ===

  #turn(name: string, known: Known): void {
    const { clusters, health, clock } = this.#deps
    const { seen } = known
    const options = clusters.get(name)?.compiled.degrade.auto
    if (!seen.asks || options === undefined) {
      known.state = undefined
      if (!seen.asks && seen.auto !== undefined) this.#writeStatus(name, known, undefined)
      return
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
    if (effect !== undefined) this.#carryOut(name, known, effect, patchOf(effect, seen, options.recovery, clock.now()))
    else this.#tell(name, known, state)
  }

  #count({ actions }: Known, action: AutoDegradeAction): void {
    actions.set(action, (actions.get(action) ?? 0) + 1)
  }

  /** @param patch of spec.degrade; undefined = nothing is to be changed */
  #carryOut(name: string, known: Known, effect: AutoDegradeEffect, patch: object | undefined): void {
    const { seen } = known
    this.#writes.begin(name, known, async () => {
      if (patch !== undefined) {
        // Of this version only: whoever has changed the object since is not overruled.
        const body = { metadata: { resourceVersion: seen.resourceVersion }, spec: { degrade: patch } }
        const options = { fieldManager: AUTO_DEGRADE_MANAGER }
        const answer = await this.#deps.client.patch(
          UPSTREAM_CLUSTERS,
          { namespace: '', name },
          'application/merge-patch+json',
          body,
          options,
        )
        learnAnswer(known, seen, answer)
        this.#deps.log.warn('the degrade mode was changed automatically', { cluster: name, ...patch })
      }
      if (known.state === undefined) return
      known.state = done(known.state, effect)
      if (effect.kind === 'enter') this.#count(known, 'Entered')
    })
  }

  #tell(name: string, known: Known, state: AutoDegradeState): void {
    const status = autoDegradeStatus(state, known.seen.auto, this.#deps.clock.now())
    known.status = status
    if (!sameJson(status, known.seen.auto)) this.#writeStatus(name, known, status)
  }

  #writeStatus(name: string, known: Known, status: AutoDegradeStatus | undefined): void {
    // A merge patch: null removes what is not there any more.
    const auto = status === undefined ? null : { causes: null, action: null, mode: null, ...status }
    const { seen } = known
    const body = { metadata: { resourceVersion: seen.resourceVersion }, status: { degrade: { auto } } }
    this.#writes.begin(name, known, async () => {
      const options = { fieldManager: AUTO_DEGRADE_MANAGER, subresource: 'status' as const }
      const at = { namespace: '', name }
      const type = 'application/merge-patch+json'
      learnAnswer(known, seen, await this.#deps.client.patch(UPSTREAM_CLUSTERS, at, type, body, options))
    })
  }
}

/** The answer to a write of `seen`, unless a watch event has come since: that is at least as new. */
function learnAnswer(known: Known, seen: SwitchedCluster, answer: JsonObject): void {
  if (known.seen === seen) known.seen = readSwitch(answer)
}

/** What is changed in spec.degrade; undefined = nothing. @param nowMs milliseconds since the epoch */
function patchOf(
  effect: AutoDegradeEffect,
  seen: SwitchedCluster,
  recovery: AutoDegradeRecovery,
  nowMs: number,
): object | undefined {
  const { kind, mode, reason } = effect
  // An expiry was that of another mode; and as long as upstream is overloaded the rate of Limited does not grow.
  if (kind === 'enter') return { mode, reason, expiresAt: null, since: null }
  // Somebody else's mode, or a way back that has begun already.
  if (!seen.automatic || seen.recovers || seen.mode !== mode) return undefined
  return { recovery, reason, ...(mode === 'Limited' && { since: metaTime(nowMs) }) }
}
