// Follows the cluster-autoscaler status ConfigMaps of all clusters that ask for it (spec.autoscaler), in the leader only: the
// other replicas need not watch the same.

import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { Clock } from '../../../kit/api/ports.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import { CONFIG_MAPS } from '../../../kube/api/kinds/foreign-kinds.ts'
import type { ClosableClient, FollowEvents, Following } from '../../../kube/api/object-client.ts'
import type { Leading, Tenant } from '../../../kube/controllers/kernel/leadership.ts'
import type { AutoscalerReport } from '../../api/upstream-cluster/cluster-autoscaler.ts'
import { reportOf } from '../../core/autoscaler-status/report.ts'
import {
  goTime,
  isTextFormat,
  LAST_UPDATED,
  readAutoscalerStatus,
  withoutProbeTimes,
  writtenAt,
} from '../../core/autoscaler-status/status.ts'
import type { CompiledAutoscaler, CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import type { AutoscalerFact } from '../../core/status/status-facts.ts'

interface AutoscalerStatusesDeps {
  /** Clusters in force. */
  readonly clusters: {
    names(): Iterable<string>
    get(name: string): { readonly compiled: Pick<CompiledCluster, 'autoscaler'> } | undefined
  }
  /** Connects as the gateway itself, through any healthy endpoint of the cluster. */
  connect(cluster: string): ClosableClient
  readonly leadership: Leading
  readonly clock: Clock
}

/** One cluster's autoscaler, for the metrics. */
export interface FollowedAutoscaler {
  readonly cluster: string
  readonly fact: AutoscalerFact
  /** Statuses that could not be parsed so far. */
  readonly unreadable: number
}

interface Followed {
  readonly settings: CompiledAutoscaler
  readonly status: FollowedStatus
  readonly client: ClosableClient
  readonly following: Following
}

export class AutoscalerStatuses {
  readonly #deps: AutoscalerStatusesDeps
  readonly #followed = new Map<string, Followed>()
  readonly #ending = new Set<Promise<void>>()
  readonly #tenant: Tenant

  constructor(deps: AutoscalerStatusesDeps) {
    this.#deps = deps
    const ended = (): Promise<unknown> => Promise.all(this.#ending)
    this.#tenant = deps.leadership.settle('the statuses of cluster-autoscalers', () => this.update(), ended)
  }

  /**
   * Call it when UpstreamClusters have changed.
   * @param changed clusters that may have changed; default: all
   */
  update(changed?: ReadonlySet<string>): void {
    const { clusters } = this.#deps
    for (const name of changed ?? new Set([...clusters.names(), ...this.#followed.keys()])) this.#updateOne(name)
  }

  #updateOne(name: string): void {
    const isLed = this.#tenant.holds()
    const wanted = isLed ? this.#deps.clusters.get(name)?.compiled.autoscaler : undefined
    const followed = this.#followed.get(name)
    if (followed !== undefined && sameJson(wanted, followed.settings)) return
    if (followed !== undefined) this.#end(name, followed)
    if (wanted !== undefined) this.#begin(name, wanted)
  }

  /** undefined = not followed here. */
  get(cluster: string): AutoscalerFact | undefined {
    return this.#followed.get(cluster)?.status.fact()
  }

  all(): FollowedAutoscaler[] {
    return [...this.#followed].map(([cluster, { status }]) => {
      return { cluster, fact: status.fact(), unreadable: status.unreadable }
    })
  }

  stop(): Promise<void> {
    return this.#tenant.leave()
  }

  #begin(cluster: string, settings: CompiledAutoscaler): void {
    const { connect, clock } = this.#deps
    const { namespace, name } = settings
    const client = connect(cluster)
    const status = new FollowedStatus(settings, clock)
    const following = client.follow(CONFIG_MAPS, namespace, status, { name, transform: slimConfigMap })
    this.#followed.set(cluster, { settings, status, client, following })
  }

  #end(cluster: string, { status, following, client }: Followed): void {
    this.#followed.delete(cluster)
    status.stop()
    const ending = following.stop().then(() => client.close())
    this.#ending.add(ending)
    void ending.finally(() => this.#ending.delete(ending))
  }
}

// Watches the status ConfigMap of one cluster's autoscaler: its content, and whether it is still being written. Staleness is decided
// by the time since a write was last seen here, never by comparing other machines' clocks with ours.

/** Characters; enough for some 300 node groups. */
export const MAX_STATUS: number = 256 * 1024
/** Between two parses of a changed status: the autoscaler writes every ten seconds, but other writers could write at any rate. */
const READ_EVERY_MS = 5_000
/** Parsing one cluster's status may take at most one part in this many of the thread's time. */
const SHARE = 50

/** The parts of the ConfigMap that are kept. */
interface Written {
  /** The status; cut one character after MAX_STATUS. */
  readonly text: string
  /** The annotation, unparsed. */
  readonly lastUpdated: string
}

export class FollowedStatus implements FollowEvents {
  readonly #settings: CompiledAutoscaler
  readonly #clock: Clock
  readonly #where: string
  #current = false
  #message = ''
  /** undefined = it doesn't exist, or was not listed yet. */
  #written: Written | undefined
  #listed = false
  /** Last write seen: monotonic. */
  #writtenMs = 0
  /** A write was seen, or the status was recent when first read. */
  #isAlive = false
  // Last result of parsing; undefined = none.
  #essence: string | undefined
  #state = ''
  #report: AutoscalerReport | undefined
  #writtenAtMs = 0
  #fault = ''
  #readAgainMs = Number.NEGATIVE_INFINITY
  #waiting: NodeJS.Timeout | undefined
  /** Statuses that could not be parsed. */
  unreadable = 0

  constructor(settings: CompiledAutoscaler, clock: Clock) {
    this.#settings = settings
    this.#clock = clock
    this.#where = `${settings.namespace}/${settings.name}`
  }

  stop(): void {
    clearTimeout(this.#waiting)
  }

  fact(): AutoscalerFact {
    const { staleAfterMs } = this.#settings
    return {
      where: this.#where,
      seen: this.#seen(),
      message: this.#current ? this.#fault : this.#message,
      state: this.#state,
      report: this.#report,
      writtenAtMs: this.#writtenAtMs,
      staleAfterMs,
    }
  }

  #seen(): AutoscalerFact['seen'] {
    if (!this.#current) return this.#message === '' ? 'pending' : 'unreachable'
    if (this.#written === undefined) return this.#listed ? 'missing' : 'pending'
    if (this.#clock.monotonic() - this.#writtenMs >= this.#settings.staleAfterMs) return 'stale'
    if (this.#fault !== '') return 'unreadable'
    return this.#isAlive && this.#report !== undefined ? 'current' : 'pending'
  }

  // === events of the watch ===

  onReplace(objects: readonly JsonObject[]): void {
    this.#listed = true
    const object = objects.find((one) => nameOf(one) === this.#settings.name)
    if (object === undefined) this.#gone()
    else this.#learn(object)
  }

  onChange(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: JsonObject): void {
    if (nameOf(object) !== this.#settings.name) return
    if (type === 'DELETED') this.#gone()
    else this.#learn(object)
  }

  onState(current: boolean, message: string): void {
    this.#current = current
    this.#message = message
  }

  #gone(): void {
    clearTimeout(this.#waiting)
    this.#waiting = undefined
    this.#written = undefined
    this.#isAlive = false
    this.#essence = undefined
    this.#state = ''
    this.#report = undefined
    this.#writtenAtMs = 0
    this.#fault = ''
  }

  #learn(object: JsonObject): void {
    const before = this.#written
    const written = readWritten(object)
    if (before?.text === written.text && before.lastUpdated === written.lastUpdated) return
    this.#written = written
    this.#writtenMs = this.#clock.monotonic()
    this.#writtenAtMs = goTime(written.lastUpdated) || writtenAt(written.text)
    const age = this.#clock.now() - this.#writtenAtMs
    // A status that is old when first seen may be the last one of an autoscaler that is gone.
    this.#isAlive = before !== undefined || age < this.#settings.staleAfterMs
    if (this.#waiting !== undefined) return
    const waitMs = this.#readAgainMs - this.#clock.monotonic()
    if (waitMs <= 0 || withoutProbeTimes(written.text) === this.#essence) this.#read()
    else {
      this.#waiting = setTimeout(() => {
        this.#waiting = undefined
        this.#read()
      }, waitMs)
      this.#waiting.unref()
    }
  }

  #read(): void {
    const text = this.#written?.text ?? ''
    const essence = withoutProbeTimes(text)
    if (essence === this.#essence) return
    const beganMs = this.#clock.monotonic()
    this.#essence = essence
    const status = text.length > MAX_STATUS ? undefined : readAutoscalerStatus({ data: { status: text } })
    const endedMs = this.#clock.monotonic()
    this.#readAgainMs = endedMs + Math.max(READ_EVERY_MS, SHARE * (endedMs - beganMs))
    if (status === undefined) {
      this.unreadable++
      this.#fault = faultOf(text)
      return
    }
    this.#fault = ''
    this.#state = status.state
    this.#report = reportOf(status)
  }
}

/** Keeps only what is needed of a ConfigMap. */
export function slimConfigMap(object: JsonObject): JsonObject {
  const { metadata, data } = object
  const { name, namespace, resourceVersion, annotations } = recordOf(metadata)
  const lastUpdated = textOf(recordOf(annotations)[LAST_UPDATED])
  const status = textOf(recordOf(data)['status'])
  return {
    metadata: { name, namespace, resourceVersion, annotations: { [LAST_UPDATED]: lastUpdated.slice(0, 100) } },
    data: { status: status.slice(0, MAX_STATUS + 1) },
  }
}

function readWritten(object: JsonObject): Written {
  const { metadata, data } = slimConfigMap(object)
  return {
    text: textOf(recordOf(data)['status']),
    lastUpdated: textOf(recordOf(recordOf(metadata)['annotations'])[LAST_UPDATED]),
  }
}

function faultOf(text: string): string {
  if (text === '') return 'its key "status" is empty'
  if (text.length > MAX_STATUS) return `its key "status" has more than ${MAX_STATUS} characters`
  if (isTextFormat(text)) {
    return 'its key "status" has the text format of cluster-autoscalers before 1.30, which is not read: upgrade the cluster-autoscaler'
  }
  return 'its key "status" is not the YAML of a cluster-autoscaler'
}
