// Clusters as seen by the request path: the compiled object, and state that outlives a change of the object.
// Controllers write, the request path reads; a change swaps one pointer.

import { type ClusterIndex, LiveClusterIndex } from '../core/cluster/cluster-index.ts'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import { LiveTrustIndex, type TrustIndex } from '../core/cluster/trust-index.ts'
import { createRetryBudget, type RetryBudget } from '../core/endpoints/retry-budget.ts'
import { CallTurns, MAX_CALLS_IN_FLIGHT } from '../core/limits/call-turns.ts'
import { ListSizes } from '../core/list-cost/list-sizes.ts'
import { AnswerColumn, type AnswerCountMemory, createAnswerCountMemory } from '../core/upstream/answer-counts.ts'
import { type EndpointHandle, EndpointSet } from './endpoints.ts'
import { type FlowHandle, FlowTable } from './flow-tables.ts'
import { Incident, type IncidentMemory } from './incident.ts'
import { ALONE, type ThreadPlace } from './thread-place.ts'

/** Kinds of calls that the gateway makes itself for a client's request; clientConfig.qps applies to each. */
export type OwnCall = 'token-review' | 'access-review' | 'pod-read' | 'page-read' | 'scale-read' | 'write-check'

export interface LiveCluster {
  /** Replaced as a whole by each change; read it once per request. */
  compiled: CompiledCluster
  readonly endpoints: EndpointSet
  readonly flows: FlowTable
  /** Estimated list sizes, as learned by this thread. */
  readonly lists: ListSizes
  readonly retryBudget: RetryBudget
  /** State kept for an incident. Replaced when the cluster is recreated under the same name. */
  incident: Incident
  readonly turns: OwnCallLimits
  /**
   * Changes when servers, their CA, audiences or issuers change, and when a cluster is recreated under the name of a deleted
   * one: earlier answers about identities become invalid.
   */
  identityEpoch: number
  /** Why the cluster rejects the gateway's own credential, if known; '' = it doesn't. */
  credentialFault: string
  /** Counts how upstream answers; undefined = not needed (CompiledDegrade.observed). */
  answers: AnswerColumn | undefined
}

/** Most clusters need few of them, if any: each is made when it is first used. */
export class OwnCallLimits {
  readonly #own: Partial<Record<OwnCall, CallTurns>> = {}
  #deletions: CallTurns | undefined

  /** Rate limit of one kind of the gateway's own calls: separate for each, so that none delays another. */
  of(kind: OwnCall): CallTurns {
    const known = this.#own[kind]
    if (known !== undefined) return known
    const turns = new CallTurns(BOUNDED_BY_REQUESTS.has(kind) ? Number.POSITIVE_INFINITY : MAX_CALLS_IN_FLIGHT)
    this.#own[kind] = turns
    return turns
  }

  /** Concurrency limit of pod deletions in evaluation in the main thread. */
  get deletions(): CallTurns {
    this.#deletions ??= new CallTurns(MAX_DELETIONS, MAX_DELETIONS_WAITING)
    return this.#deletions
  }
}

/** Only requests that may delete the pod, scale it or write the object cause one. */
const BOUNDED_BY_REQUESTS: ReadonlySet<OwnCall> = new Set(['pod-read', 'scale-read', 'write-check'])
/** Concurrent evaluations of deletions per cluster and thread; a single source may use half of them, two a third each ... */
export const MAX_DELETIONS = 512
/** Deletions queued for a turn. */
const MAX_DELETIONS_WAITING = 8192

/** A cluster for another thread: plain data and the shared memory. */
export interface ClusterHandle {
  readonly compiled: CompiledCluster
  readonly endpoints: readonly EndpointHandle[]
  readonly flows: readonly FlowHandle[]
  readonly answers: AnswerCountMemory | undefined
  readonly incident: IncidentMemory
}

const HANDLES_A_PART = 64

export class ClusterTable {
  readonly #live = new Map<string, LiveCluster>()
  readonly #index = new LiveClusterIndex()
  readonly #trust = new LiveTrustIndex()
  #generation = 0
  /** Unique per cluster, and per version if it differs in what verifies identities. */
  #nextEpoch = 0
  readonly #place: ThreadPlace

  constructor(place: ThreadPlace = ALONE) {
    this.#place = place
  }

  get index(): ClusterIndex {
    return this.#index
  }

  /** Which clusters accept the same credentials. */
  get trust(): TrustIndex {
    return this.#trust
  }

  /** Counts applied changes. */
  get generation(): number {
    return this.#generation
  }

  get(name: string): LiveCluster | undefined {
    return this.#live.get(name)
  }

  values(): Iterable<LiveCluster> {
    return this.#live.values()
  }

  names(): Iterable<string> {
    return this.#live.keys()
  }

  get size(): number {
    return this.#live.size
  }

  /**
   * Applies new or changed clusters, and drops others. Unchanged ones keep their state. The first cluster
   * to claim a host keeps it.
   */
  change(changed: readonly CompiledCluster[], removed: readonly string[], monotonicMs: number): void {
    for (const name of removed) this.#remove(name)
    for (const cluster of changed) this.#put(cluster, monotonicMs, undefined)
    this.#generation++
  }

  /** Applies a change of another thread's table, which then has this generation. */
  follow(changed: readonly ClusterHandle[], removed: readonly string[], generation: number, monotonicMs: number): void {
    for (const name of removed) this.#remove(name)
    for (const handle of changed) this.#put(handle.compiled, monotonicMs, handle)
    this.#generation = generation
  }

  /** Everything another thread needs to follow this table. */
  handle(name: string): ClusterHandle | undefined {
    const live = this.#live.get(name)
    if (live === undefined) return undefined
    const { compiled, endpoints, flows, answers, incident } = live
    return {
      compiled,
      endpoints: endpoints.handles(),
      flows: flows.handles(),
      answers: answers?.memory,
      incident: incident.memory,
    }
  }

  /** Those of many clusters, in parts: what clusters have in common (lists that match everything) is copied once in each. */
  *handles(names: readonly string[]): Iterable<readonly ClusterHandle[]> {
    for (let first = 0; first < names.length; first += HANDLES_A_PART) {
      const some = names.slice(first, first + HANDLES_A_PART).map((name) => this.handle(name))
      yield some.filter((handle) => handle !== undefined)
    }
  }

  /** A thread has died: releases what its requests held, and stops counting them. */
  releaseThread(thread: number): void {
    for (const live of this.#live.values()) {
      live.endpoints.releaseThread(thread)
      live.flows.releaseThread(thread)
      live.incident.releaseThread(thread)
    }
  }

  #remove(name: string): void {
    const live = this.#live.get(name)
    if (live === undefined) return
    this.#live.delete(name)
    this.#reindex(live.compiled, undefined)
  }

  #put(cluster: CompiledCluster, monotonicMs: number, handle: ClusterHandle | undefined): void {
    const known = this.#live.get(cluster.name)
    if (handle === undefined && known?.compiled.revision === cluster.revision) return
    const before = known?.compiled
    const live = known ?? this.#create(cluster, handle?.incident)
    if (identityDiffers(live.compiled, cluster)) live.identityEpoch = this.#nextEpoch++
    live.endpoints.update(cluster.endpoints, handle?.endpoints)
    live.flows.update(cluster.schemas, monotonicMs, handle?.flows)
    live.answers = this.#answersOf(live, cluster, handle)
    if (known !== undefined && handle !== undefined) live.incident = new Incident(this.#place, handle.incident)
    live.compiled = cluster
    this.#reindex(before, cluster)
  }

  /** Kept as long as decisions depend on them. */
  #answersOf(
    { answers }: LiveCluster,
    { degrade }: CompiledCluster,
    handle: ClusterHandle | undefined,
  ): AnswerColumn | undefined {
    if (!degrade.observed) return undefined
    const memory = handle === undefined ? answers?.memory : handle.answers
    if (answers !== undefined && answers.memory === memory) return answers
    const { thread, threads } = this.#place
    return new AnswerColumn(memory ?? createAnswerCountMemory(threads), thread)
  }

  #reindex(before: CompiledCluster | undefined, after: CompiledCluster | undefined): void {
    this.#trust.replace(before, after)
    if (this.#index.replace(before, after)) return
    const all: CompiledCluster[] = []
    for (const { compiled } of this.#live.values()) all.push(compiled)
    this.#index.rebuild(all)
  }

  #create(compiled: CompiledCluster, incident: IncidentMemory | undefined): LiveCluster {
    const live: LiveCluster = {
      compiled,
      endpoints: new EndpointSet(this.#place),
      flows: new FlowTable(this.#place),
      lists: new ListSizes(),
      retryBudget: createRetryBudget(),
      incident: new Incident(this.#place, incident),
      turns: new OwnCallLimits(),
      identityEpoch: this.#nextEpoch++,
      credentialFault: '',
      answers: undefined,
    }
    this.#live.set(compiled.name, live)
    return live
  }
}

function identityDiffers(a: CompiledCluster, b: CompiledCluster): boolean {
  // DNS addresses of a server come and go; the identity provider stays the same.
  const servers = (cluster: CompiledCluster): string =>
    [...new Set(cluster.endpoints.map(({ url, of }) => of?.url ?? url))].join(' ')
  return (
    servers(a) !== servers(b) ||
    a.client.ca !== b.client.ca ||
    a.authentication.audiences.join(' ') !== b.authentication.audiences.join(' ') ||
    JSON.stringify(a.authentication.issuers) !== JSON.stringify(b.authentication.issuers)
  )
}
