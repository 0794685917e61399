// One cluster of a cell as followed by its aggregator: its pods, and the version up to which they were seen. Most cells have only one
// cluster.

import type { CompiledAggregation } from '../../../gateway/core/cluster/compiled-cluster.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { PODS } from '../../../kube/api/kinds/foreign-kinds.ts'
import type { FollowEvents, Following, ObjectClient } from '../../../kube/api/object-client.ts'
import { selectorText } from '../../../kube/core/selectors/compile-selector.ts'
import { compareVersions } from '../../core/history/resource-version.ts'
import { podFacts } from '../../core/quota/pod-facts.ts'
import { CellStreamTime } from './cell-stream-time.ts'
import { type PodChange, PodSnapshot, type SnapshotPod, slimPod } from './pod-snapshot.ts'

/** A cluster that holds pods of the cell. */
export interface CellMember {
  /** Name of its UpstreamCluster. */
  readonly name: string
  readonly client: ObjectClient
  readonly aggregation: CompiledAggregation
}

interface MemberStreamDeps {
  readonly cell: string
  readonly clock: Clock
  readonly log: Logger
  /**
   * Called for each pod that was deleted or no longer matches the selector, before `onReplaced` or `onChanged`; undefined = no listener.
   * @param version newer than any that the pod had; '' = unknown yet: it is called again once known
   */
  readonly onGone: ((member: string, uid: string, version: string) => void) | undefined
  /** All pods were listed again. */
  onReplaced(): void
  onChanged(change: PodChange): void
  /** The stream or its stream time has advanced. */
  onAdvanced(): void
}

export class MemberStream implements FollowEvents {
  readonly name: string
  readonly pods: PodSnapshot
  readonly streamTime: CellStreamTime
  /** Last event of the stream: wall clock, milliseconds. */
  heardAtMs = 0
  current = false
  message = ''
  /** When `current` last changed: wall clock, milliseconds. */
  sinceMs: number
  readonly #client: ObjectClient
  readonly #deps: MemberStreamDeps
  readonly #following: Following
  /** Uids missing in the last list, until its version is known. */
  #listedGone: string[] = []
  #stopped = false

  /** @throws {SyntaxError} if the pod selector is invalid */
  constructor({ name, client, aggregation }: CellMember, deps: MemberStreamDeps) {
    const { clock, log } = deps
    const { podSelector, syncTime: mode, syncTimeAnnotation: annotation } = aggregation
    const labelSelector = podSelector === undefined ? '' : selectorText(podSelector)
    this.name = name
    this.sinceMs = clock.now()
    this.#client = client
    this.#deps = deps
    this.pods = new PodSnapshot(() => clock.monotonic())
    this.streamTime = new CellStreamTime({
      mode,
      annotation,
      readVersion: () => this.newestVersion(),
      clock,
      log,
      onMoved: () => deps.onAdvanced(),
    })
    this.#following = client.follow(PODS, '', this, {
      labelSelector,
      transform: (pod) => slimPod(pod, annotation),
    })
  }

  /** By a consistent read. */
  async newestVersion(): Promise<string> {
    return (await this.#client.currentVersion?.(PODS)) ?? (await this.#client.list(PODS, '')).resourceVersion
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.streamTime.stop()
    await this.#following.stop()
  }

  onPage(pods: readonly JsonObject[], first: boolean): void {
    if (!this.#stopped) this.pods.prepare(pods, first)
  }

  onReplace(pods: readonly JsonObject[]): void {
    if (this.#stopped) return
    const { onGone } = this.#deps
    this.#listedGone = []
    this.pods.replace(
      pods,
      onGone &&
        ((uid) => {
          this.#listedGone.push(uid)
          onGone(this.name, uid, '')
        }),
    )
    this.streamTime.replaced(pods)
    this.#deps.onReplaced()
  }

  onChange(type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: JsonObject): void {
    if (this.#stopped) return
    const change = this.pods.change(type, pod)
    this.streamTime.observed(pod)
    if (type === 'DELETED' && change.before !== undefined) this.#gone(change.before, pod)
    this.#deps.onChanged(change)
  }

  /** @param last the pod in the event, with the version of the deletion or of the change after which it no longer matched */
  #gone({ uid, resourceVersion }: SnapshotPod, last: JsonObject): void {
    const version = podFacts(last)?.resourceVersion ?? ''
    const isNewer = (compareVersions(version, resourceVersion) ?? 0) > 0
    this.#deps.onGone?.(this.name, uid, isNewer ? version : '')
  }

  onVersion(version: string): void {
    if (this.#stopped) return
    for (const uid of this.#listedGone) this.#deps.onGone?.(this.name, uid, version)
    this.#listedGone = []
    this.heardAtMs = this.#deps.clock.now()
    this.pods.reached(version)
    this.streamTime.reached(version)
    this.#deps.onAdvanced()
  }

  onState(current: boolean, message: string): void {
    if (current !== this.current || this.message === '') this.sinceMs = this.#deps.clock.now()
    this.current = current
    this.message = message
    const { log, cell } = this.#deps
    const about = { cell, cluster: this.name }
    if (current) log.info('the pods of a cell are followed', { ...about, pods: this.pods.size })
    else log.warn('the pods of a cell cannot be followed', { ...about, why: message })
  }
}
