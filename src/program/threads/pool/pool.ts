// The gateway threads, as managed by the main thread: starts them, sends them every change, replaces those that die, collects their counts, and stops
// them. Nothing here blocks, and no request waits for it.

import type { AuditPolicy } from '../../../audit/core/policy.ts'
import type { ListSize } from '../../../gateway/api/list-request.ts'
import type { ThreadLoad } from '../../../gateway/core/balance/thread-load.ts'
import { restartDelayMs } from '../../../gateway/core/endpoints/restart-delay.ts'
import { SESSION_ENDED, type SessionChange } from '../../../gateway/core/logout/ended-session.ts'
import type { ServingPair } from '../../../gateway/io/listener/tls-contexts.ts'
import { KEYS_READ, type KeysRead } from '../../../gateway/io/reviews/issuer-tokens.ts'
import type { GatewayMetrics } from '../../../gateway/metrics/metrics.ts'
import type { ClusterTable } from '../../../gateway/state/clusters.ts'
import { ConnectionPlaces } from '../../../gateway/state/connection-places.ts'
import { KnownTokens } from '../../../gateway/state/known-tokens.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { formatListenAddress, type ListenAddress } from '../../../kit/core/listen-address.ts'
import {
  type AnsweredQuestion,
  Answers,
  type AnswersThreads,
  type AskOptions,
  type AsksThreads,
  type OfThread,
  type Question,
} from '../../../kit/core/topics/questions.ts'
import type { SubscribeOptions, SubscribesToThreads, ThreadStream } from '../../../kit/core/topics/streams.ts'
import { type TopicChannel, TopicSubscribers } from '../../../kit/core/topics/topics.ts'
import type { LineWriter } from '../../../kit/io/logs/line-writer.ts'
import type { LogLevel } from '../../../kit/io/logs/log.ts'
import { cannotListen } from '../../../kit/io/world/free-port.ts'
import type { AddressFailures } from '../../../process/failures/address-failures.ts'
import { createLine } from '../../io/threads.ts'
import type { ArgumentOf, CallHandlers } from '../calls.ts'
import type { FromThread, ThreadData, ThreadLines } from '../messages.ts'
import type { GatewayCalls, MainCalls, ThreadReport } from '../thread-calls.ts'
import { askThread, askThreads, type MainCall, type ThreadAnswer } from './ask-threads.ts'
import { InheritedPorts } from './inherited-ports.ts'
import { ThreadProgress } from './progress.ts'
import { StandingMessages, ThreadSubscriptions } from './subscriptions.ts'
import { type StartThread, WorkerSlot, type WorkerSlotOwner } from './worker-slot.ts'

interface PoolDeps {
  readonly threads: number
  readonly start: StartThread
  readonly data: Omit<ThreadData, 'place' | 'linesTaken' | 'connectionPlaces' | 'knownTokens'>
  readonly seed: ThreadData['place']['seed']
  /** The table followed by the threads. */
  readonly clusters: ClusterTable
  readonly metrics: GatewayMetrics
  readonly clock: Clock
  readonly log: Logger
  readonly access: LineWriter | undefined
  readonly audit: LineWriter | undefined
  /** Counts failures by address; absent = not counted. */
  readonly failures?: AddressFailures
  /** A thread's connection to an endpoint broke. */
  onBroken(cluster: string, endpoint: string): void
  /** A cluster may have refused the gateway itself rather than a user. Default: ignored. */
  onRefusing?(cluster: string): void
  onAwaited?(cluster: string): void
}

/** Deadline of a thread's answer; a late thread is omitted. */
const ANSWER_MS = 1_000
/** A thread passes connections to this many neighbours on each side: with hundreds of threads, lines between all of them would be too many. */
const LINES = 32

export class ThreadPool implements WorkerSlotOwner, AsksThreads, SubscribesToThreads {
  readonly slots: readonly WorkerSlot[]
  readonly handlers: CallHandlers<GatewayCalls> = {
    ask: (asked) => this.#answers.of(asked),
  }
  /** Between the main thread's and the gateway threads' parts of a subject. */
  readonly topics: TopicChannel = {
    publish: (topic, payload, about = '') => this.#standing.send(topic.message(payload), `${topic.name} ${about}`),
    subscribe: (topic, listener) => this.#subscribers.subscribe(topic, listener),
  }
  readonly #subscribers = new TopicSubscribers()
  readonly #answers = new Answers()
  /** Answers to questions of the gateway threads' parts of a subject. */
  readonly questions: AnswersThreads = this.#answers
  readonly #deps: PoolDeps
  readonly #progress: ThreadProgress
  readonly #inherited: InheritedPorts
  readonly #subscriptions: ThreadSubscriptions
  readonly #standing: StandingMessages
  /** undefined = the configured one. */
  #logLevel: LogLevel | undefined
  /** With the ports of the first thread, once it is listening. */
  #addresses: readonly ListenAddress[] = []
  #state: 'starting' | 'running' | 'ending' = 'starting'
  #failure: Error | undefined
  /** Keyed by cluster: why it rejects the gateway's own credential. */
  readonly #credentialFaults = new Map<string, string>()
  readonly #places: ConnectionPlaces
  readonly #restarts = new Set<NodeJS.Timeout>()
  /** Threads that have not drained although everything was aborted are left to `end`. */
  readonly #abandoned = Promise.withResolvers<void>()
  #abandoning: NodeJS.Timeout | undefined

  constructor(deps: PoolDeps) {
    this.#deps = deps
    const { threads, start, data, seed } = deps
    const connectionPlaces = ConnectionPlaces.allocate(threads)
    const knownTokens = KnownTokens.allocate()
    this.#places = new ConnectionPlaces(connectionPlaces)
    this.slots = Array.from({ length: threads }, (_, thread) => {
      return new WorkerSlot(
        thread,
        start,
        { ...data, connectionPlaces, knownTokens, place: { thread, threads, seed } },
        this,
      )
    })
    this.#progress = new ThreadProgress(this.slots)
    this.#standing = new StandingMessages(this.slots)
    this.#subscriptions = new ThreadSubscriptions(this.slots, deps.log)
    this.#inherited = new InheritedPorts(this.slots, this.#places)
    deps.failures?.onBlocked((blocks) => this.#standing.sendOnce({ type: 'blocked', blocks }))
  }

  /** Finds the inherited sockets, long before `listen`. @throws {UserError} if there are none */
  takeInherited(addresses: readonly ListenAddress[]): void {
    this.#inherited.take(addresses)
  }

  /** Begins to start all threads; `online` waits for them. */
  start(): void {
    for (const slot of this.slots) {
      slot.counts = true
      slot.start()
    }
  }

  /** Resolves when every thread takes messages. @throws {UserError} if one cannot start */
  online(): Promise<void> {
    return this.#until(() => this.slots.every(({ state }) => state !== 'starting'))
  }

  /**
   * Opens the ports in all threads; returns the ports in the order of the addresses. Port 0 is one port for all: the first thread's. @throws
   * {UserError} if an address cannot be opened for listening
   */
  async listen(addresses: readonly ListenAddress[]): Promise<readonly number[]> {
    const [first, ...others] = this.slots
    first?.post({ type: 'listen', addresses })
    await this.#until(() => first?.state === 'listening')
    const ports = first?.ports ?? []
    this.#addresses = addresses.map((address, i) => ({ ...address, port: ports[i] ?? 0 }))
    for (const slot of others) slot.post({ type: 'listen', addresses: this.#addresses })
    await this.#until(() => this.slots.every(({ state }) => state === 'listening'))
    this.#state = 'running'
    const inherited = await this.#inherited.open(addresses)
    return ports.map((port, i) => port || (inherited[i] ?? 0))
  }

  /**
   * Sends a change of the table to all threads. Resolves once every thread has put it in force, in the order of the calls; does not wait for a thread
   * that dies. Never rejects.
   */
  publish(changed: readonly string[], removed: readonly string[]): Promise<void> {
    const { generation } = this.#deps.clusters
    const inForce = this.#progress.published(generation)
    for (const slot of this.slots) if (slot.takesMessages) this.#tell(slot, changed, removed)
    this.#progress.settle()
    return inForce
  }

  /** Replaces the gateway's own certificate. */
  serving(serving: ServingPair): void {
    this.#standing.send({ type: 'serving', serving })
  }

  /** Replaces the audit policy. */
  auditPolicy(policy: AuditPolicy): void {
    this.#standing.send({ type: 'audit-policy', policy })
  }

  /** The process's listeners, to which threads must not connect. */
  ownListeners(addresses: readonly ListenAddress[]): void {
    this.#standing.send({ type: 'own-listeners', addresses })
  }

  /** Why a cluster rejects the gateway's own credential; '' = it no longer does. */
  credentialFault(cluster: string, fault: string): void {
    if (fault === (this.#credentialFaults.get(cluster) ?? '')) return
    const message = { type: 'credential-fault', cluster, fault } as const
    if (fault === '') {
      this.#credentialFaults.delete(cluster)
      this.#standing.withdraw(message, cluster)
    } else {
      this.#credentialFaults.set(cluster, fault)
      this.#standing.send(message, cluster)
    }
  }

  /** The keys of an issuer have been read, or no cluster names it any more. */
  issuerKeys(read: KeysRead): void {
    const message = KEYS_READ.message(read)
    const about = `${KEYS_READ.name} ${read.source}`
    if (read.keys === undefined) this.#standing.withdraw(message, about)
    else this.#standing.send(message, about)
  }

  /** A session has ended, or is forgotten. */
  endedSession(change: SessionChange): void {
    const message = SESSION_ENDED.message(change)
    const about = `${SESSION_ENDED.name} ${change.id}`
    if (change.ended === undefined) this.#standing.withdraw(message, about)
    else this.#standing.send(message, about)
  }

  /** Resolves when all threads have put in force what was published so far. */
  applied(): Promise<void> {
    const { generation } = this.#deps.clusters
    return this.#until(() => this.#progress.isInForce(generation))
  }

  /** The thread's client connections and requests. */
  loadOf(slot: WorkerSlot): ThreadLoad {
    return this.#places.load(slot.index)
  }

  /** Each thread's report, when its newest counts are known; undefined for one that does not answer within a second. */
  async reports(): Promise<readonly (ThreadReport | undefined)[]> {
    return await Promise.all(this.slots.map((slot) => this.#report(slot)))
  }

  async #report(slot: WorkerSlot): Promise<ThreadReport | undefined> {
    const answered = await askThread(slot, this.#deps.log, 'report', undefined, { timeoutMs: ANSWER_MS })
    slot.answers = answered !== undefined
    return answered?.answer
  }

  /** One answer per thread; threads that are gone, fail or take too long are omitted. Never rejects. */
  askThreads<K extends MainCall>(
    name: K,
    argument: ArgumentOf<MainCalls, K>,
    options?: AskOptions,
  ): Promise<readonly ThreadAnswer<K>[]> {
    return askThreads(this.slots, this.#deps.log, name, argument, options)
  }

  async ask<A, R>(question: Question<A, R>, argument: A, options?: AskOptions): Promise<readonly OfThread<R>[]> {
    const answers = await this.askThreads('ask', question.asked(argument), options)
    return answers.flatMap(({ thread, answer }) =>
      question.isAnswered(answer) ? [{ thread, answer: answer.answer }] : [],
    )
  }

  /** Applies to all threads, including later ones. */
  logLevel(level: LogLevel): void {
    this.#logLevel = level
    void this.askThreads('logLevel', level)
  }

  subscribe<Q, E>(stream: ThreadStream<Q, E>, question: Q, options: SubscribeOptions<E>): () => void {
    return this.#subscriptions.subscribe(stream, question, options)
  }

  /** A drain is coming: HTTP/1.1 clients, which cannot be told while idle, open another connection for their next request. */
  leave(): void {
    this.#standing.send({ type: 'leave' })
  }

  /** Resolves when nothing is running in any thread; some time after an abort in any case. */
  async drain(): Promise<void> {
    this.#state = 'ending'
    for (const timer of this.#restarts) clearTimeout(timer)
    this.#inherited.close()
    for (const slot of this.slots) slot.post({ type: 'drain' })
    const drained = this.#until(() => this.slots.every((slot) => slot.drained || slot.state === 'gone'))
    await Promise.race([drained, this.#abandoned.promise])
    clearTimeout(this.#abandoning)
  }

  /** Aborts all requests and connections. A hanging thread never confirms: the wait is no longer than for any answer. */
  abort(): void {
    for (const slot of this.slots) slot.post({ type: 'abort' })
    this.#abandoning ??= setTimeout(() => this.#abandoned.resolve(), ANSWER_MS).unref()
  }

  /** Ends all threads, gracefully if they answer. */
  async end(): Promise<void> {
    this.#state = 'ending'
    for (const timer of this.#restarts) clearTimeout(timer)
    this.#inherited.close()
    for (const slot of this.slots) slot.post({ type: 'end' })
    let deadline: NodeJS.Timeout | undefined
    const tooLate = new Promise<void>((resolve) => {
      deadline = setTimeout(resolve, ANSWER_MS)
    })
    await Promise.race([this.#until(() => this.slots.every(({ ended, state }) => ended || state === 'gone')), tooLate])
    clearTimeout(deadline)
    await Promise.all(this.slots.map((slot) => slot.terminate()))
  }

  onUnclaimed(answered: AnsweredQuestion): void {
    this.#answers.unclaimed(answered)
  }

  onMessage(slot: WorkerSlot, message: FromThread): void {
    switch (message.type) {
      case 'online':
        this.#onOnline(slot)
        break
      case 'failed':
        this.#onFailed(slot, message.address, message.message, message.code)
        break
      case 'metrics':
        this.#deps.metrics.threads.latest(slot.threadId, message.metrics)
        break
      case 'lines':
        this.#write(message.lines)
        break
      case 'lists-learned':
        this.#onListsLearned(slot, message.cluster, message.sizes)
        break
      case 'failures':
        for (const { source, count } of message.failures) void this.#deps.failures?.failed(source, count)
        break
      case 'published':
        this.#subscribers.deliver(message)
        break
      case 'no-stream':
      case 'events':
        this.#subscriptions.receive(slot, message)
        break
      default:
    }
    this.#progress.settle()
  }

  /** Sends it everything the others know; the clusters first, because other messages may refer to them. */
  #onOnline(slot: WorkerSlot): void {
    this.#tell(slot, [...this.#deps.clusters.names()], [])
    this.#tellLists(slot)
    this.#standing.welcome(slot)
    const blocks = this.#deps.failures?.blocks() ?? []
    if (blocks.length > 0) slot.post({ type: 'blocked', blocks })
    this.#join(slot)
    this.#subscriptions.online(slot)
    if (this.#logLevel !== undefined) void askThread(slot, this.#deps.log, 'logLevel', this.#logLevel)
    if (this.#state === 'running') slot.post({ type: 'listen', addresses: this.#addresses })
  }

  /** Releases what the thread held and starts a replacement; the other threads continue. */
  onExit(slot: WorkerSlot, error: Error | undefined): void {
    const { clusters, metrics, log, clock } = this.#deps
    clusters.releaseThread(slot.index)
    this.#places.died(slot.index)
    metrics.threads.died(slot.threadId)
    if (this.#state === 'starting') {
      this.#fail(new UserError(`a gateway thread cannot start: ${reasonOf(error)}`, 'the process log may say more'))
    } else if (this.#state === 'running') {
      const delayMs = restartDelayMs(slot.history, clock.monotonic())
      const stack = error?.stack ?? reasonOf(error)
      log.error('gateway thread died; another one takes its place', { thread: slot.index, delayMs, stack })
      slot.restarts++
      if (delayMs === 0) slot.start()
      else this.#startLater(slot, delayMs)
    }
    this.#progress.settle()
  }

  #startLater(slot: WorkerSlot, delayMs: number): void {
    const timer = setTimeout(() => {
      this.#restarts.delete(timer)
      slot.start()
    }, delayMs)
    timer.unref()
    this.#restarts.add(timer)
  }

  /** List sizes learned by one thread, for the others, and for later ones. */
  #onListsLearned(from: WorkerSlot, cluster: string, sizes: readonly ListSize[]): void {
    const lists = this.#deps.clusters.get(cluster)?.lists
    if (lists === undefined) return
    for (const size of sizes) lists.merge(size)
    this.#standing.sendOnce({ type: 'list-sizes', cluster, sizes }, from)
  }

  #tellLists(slot: WorkerSlot): void {
    for (const { compiled, lists } of this.#deps.clusters.values()) {
      if (lists.size > 0) slot.post({ type: 'list-sizes', cluster: compiled.name, sizes: lists.top() })
    }
  }

  /** Lines between a thread that has come online and those already online. */
  #join(slot: WorkerSlot): void {
    for (const other of this.slots) {
      const apart = Math.abs(slot.index - other.index)
      const distance = Math.min(apart, this.slots.length - apart)
      if (distance === 0 || distance > LINES || !other.takesMessages) continue
      const [here, there] = createLine()
      slot.post({ type: 'line', thread: other.index, port: here }, [here])
      other.post({ type: 'line', thread: slot.index, port: there }, [there])
    }
  }

  #tell(slot: WorkerSlot, changed: readonly string[], removed: readonly string[]): void {
    const { clusters } = this.#deps
    for (const handles of clusters.handles(changed)) slot.post({ type: 'clusters', handles })
    slot.post({ type: 'commit', generation: clusters.generation, removed })
  }

  #onFailed(slot: WorkerSlot, address: ListenAddress, message: string, code: string): void {
    if (this.#state === 'running') {
      // Not the thread's fault, but it cannot serve: its replacement tries again, with growing delays.
      const { log } = this.#deps
      log.error('gateway thread cannot listen', {
        thread: slot.index,
        address: formatListenAddress(address),
        error: message,
      })
      void slot.terminate()
      return
    }
    this.#fail(cannotListen(address, message, code, '--listen'))
  }

  #write({ log: calls, access, audit, broken, refusing, awaited }: ThreadLines): void {
    const { log, access: accessLog, audit: auditLog } = this.#deps
    for (const { level, message, fields } of calls) log[level](message, fields)
    for (const line of access) accessLog?.write(line)
    for (const line of audit) auditLog?.write(line)
    for (const { cluster, endpoint } of broken) this.#deps.onBroken(cluster, endpoint)
    for (const cluster of refusing) this.#deps.onRefusing?.(cluster)
    for (const cluster of awaited) this.#deps.onAwaited?.(cluster)
  }

  #fail(error: Error): void {
    this.#failure ??= error
    this.#progress.fail(error)
  }

  #until(done: () => boolean): Promise<void> {
    if (this.#failure !== undefined && this.#state === 'starting') return Promise.reject(this.#failure)
    return this.#progress.until(done)
  }
}

function reasonOf(error: Error | undefined): string {
  return error?.message ?? 'it exited without an error'
}
