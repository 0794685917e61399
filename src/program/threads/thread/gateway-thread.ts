// A gateway thread: its own listeners on the shared ports, TLS contexts, clusters, upstream connections, reviewers and metrics, and the request path.
// It follows the main thread's messages; only deletions of protected pods and checked scale-downs wait for one.

import type { Socket } from 'node:net'
import { profileThread } from '../../../admin/io/profile.ts'
import { PolicyAudit } from '../../../audit/io/events/policy-audit.ts'
import {
  createSnapshotFollower,
  type SnapshotFollower,
  ThreadGrants,
} from '../../../gateway/controllers/follow-snapshots.ts'
import { GRANTS_IN_FORCE } from '../../../gateway/core/identity/access-grants.ts'
import { END_SESSIONS, SESSION_ENDED } from '../../../gateway/core/logout/ended-session.ts'
import { type Listener, listen } from '../../../gateway/io/listener/listener-socket.ts'
import { TlsContexts } from '../../../gateway/io/listener/tls-contexts.ts'
import { tlsPolicy } from '../../../gateway/io/listener/tls-policy.ts'
import { KEYS_READ, READ_KEYS } from '../../../gateway/io/reviews/issuer-tokens.ts'
import { threadScheduler } from '../../../gateway/io/scheduling/thread-scheduler.ts'
import {
  CLIENTS_DRAINED,
  CLIENTS_OFFERED,
  LIMITED,
  LOG_LINES_DROPPED,
  THREAD_WAITING,
  UPSTREAM_CONNECTIONS,
} from '../../../gateway/metrics/descriptors.ts'
import { clusterLabels, MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import type { Filters } from '../../../gateway/request/exchange/decision.ts'
import type { Gateway } from '../../../gateway/request/exchange/gateway.ts'
import { ConnectionPlaces } from '../../../gateway/state/connection-places.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { ListenAddress } from '../../../kit/core/listen-address.ts'
import { Answers, ThreadQuestions } from '../../../kit/core/topics/questions.ts'
import { type TopicChannel, TopicSubscribers } from '../../../kit/core/topics/topics.ts'
import { DialGuard } from '../../../kit/io/dial/dial-guard.ts'
import { inStep } from '../../../kit/io/stalls/steps.ts'
import { systemClock } from '../../../kit/io/world/clock.ts'
import { addTickable, removeTickable } from '../../../kit/io/world/coarse-ticker.ts'
import { tuneForRequests } from '../../../kit/io/world/v8-flags.ts'
import { reportStalls } from '../../../process/stalls/report-stalls.ts'
import { ConnectionSpread } from '../../connections/connection-spread.ts'
import { HeldConnections } from '../../connections/held-connections.ts'
import type { ThreadSubjects } from '../../subjects/load.ts'
import type { ObservedThread, SubjectObserver } from '../../subjects/subject.ts'
import { type CallHandlers, Calls } from '../calls.ts'
import type { FromThread, ThreadData, ToThread } from '../messages.ts'
import type { GatewayCalls, MainCalls, ThreadReport } from '../thread-calls.ts'
import { createAdmission } from './admission.ts'
import { createGateway } from './create-gateway.ts'
import { drainThread } from './drain.ts'
import { ThreadFailures } from './failures.ts'
import { createFilters } from './filters.ts'
import { ListLearning } from './list-learning.ts'
import { listenerOptions } from './listener-options.ts'
import { gatewayEvents } from './observers.ts'
import { ThreadOutbox } from './outbox.ts'
import { proxyProtocolOptions } from './proxy-protocol-options.ts'
import { ThreadStreams } from './streams.ts'
import type { WarmUp, WarmUpDeps } from './warm-up.ts'

/** How often the thread reports by itself; less often if that takes long, because of thousands of clusters. */
const REPORT_MS = 5_000
/** Reports may take at most this fraction of the time: one in ... */
const REPORT_SHARE = 500

/** Longer than a provider may take for two documents. */
const READ_KEYS_TIMEOUT_MS = 25_000
/** Longer than an API server may take for a write. */
const END_SESSIONS_TIMEOUT_MS = 30_000

export class GatewayThread {
  readonly #data: ThreadData
  readonly #post: (message: FromThread) => void
  readonly #outbox: ThreadOutbox
  readonly #metrics = new MetricsRecorder()
  readonly #calls: Calls<GatewayCalls, MainCalls>
  readonly #failures: ThreadFailures
  readonly #streams: ThreadStreams
  readonly #lists: ListLearning
  readonly #audit: PolicyAudit | undefined
  /** To the main thread, which asks all threads. */
  readonly #answers = new Answers()
  /** Those that the subjects add. */
  readonly #observers: readonly SubjectObserver[]
  readonly #topics = new TopicSubscribers()
  readonly #questions = new ThreadQuestions((asked, timeoutMs) => this.#calls.call('ask', asked, { timeoutMs }))
  readonly #filters: Filters
  readonly #guard: DialGuard
  readonly #contexts: TlsContexts
  readonly #gateway: Gateway
  readonly #follower: SnapshotFollower
  readonly #grants: ThreadGrants
  #reporting: NodeJS.Timeout | undefined
  readonly #spread: ConnectionSpread
  readonly #held: HeldConnections
  #listeners: Listener[] = []
  #leaving = false
  /** Until the ports are open. */
  #opening: Promise<void> = Promise.resolve()
  #endStalls: () => void = () => undefined
  /** Ends before the ports open. */
  readonly #warmUp: WarmUp | undefined

  /** @param startWarmUp default: the first client has to wait until V8 has compiled what it needs */
  constructor(
    data: ThreadData,
    post: (message: FromThread) => void,
    subjects: ThreadSubjects,
    startWarmUp?: (deps: WarmUpDeps) => WarmUp,
  ) {
    tuneForRequests()
    const { config, place } = data
    this.#data = data
    this.#guard = new DialGuard(config.allowLocalServers)
    this.#post = post
    this.#outbox = new ThreadOutbox((lines) => post({ type: 'lines', lines }), data.linesTaken, config.logLevel)
    this.#calls = new Calls({
      post,
      handlers: this.#callHandlers(),
      onUnclaimed: (late) => {
        if (late.name === 'ask') this.#questions.late(late.answer)
      },
    })
    this.#failures = new ThreadFailures(post, data.knownTokens, systemClock.monotonic)
    this.#streams = new ThreadStreams(post)
    this.#observers = this.#createObservers(subjects)
    this.#lists = new ListLearning(() => this.#gateway.clusters, this.#metrics, systemClock.now, post)
    this.#contexts = new TlsContexts(data.serving, tlsPolicy(config.tlsMinVersion, config.tlsCipherSuites))
    this.#audit = createPolicyAudit(data, this.#outbox)
    this.#gateway = createGateway({
      data,
      clock: systemClock,
      metrics: this.#metrics,
      outbox: this.#outbox,
      failures: this.#failures,
      guard: this.#guard,
      events: this.#events(),
      readKeys: (source) => this.#questions.ask(READ_KEYS, source, READ_KEYS_TIMEOUT_MS),
      endSessions: (ended) => this.#questions.ask(END_SESSIONS, ended, END_SESSIONS_TIMEOUT_MS),
      tracer: this.#observers.find(({ tracer }) => tracer !== undefined)?.tracer,
    })
    this.#topics.subscribe(KEYS_READ, (read) => this.#gateway.issuers.setKeys(read))
    this.#topics.subscribe(SESSION_ENDED, ({ id, ended }) => {
      this.#gateway.endedSessions.set(id, ended)
      if (ended !== undefined) this.#gateway.running.abortEnded(ended)
    })
    this.#grants = new ThreadGrants(this.#gateway)
    this.#topics.subscribe(GRANTS_IN_FORCE, (all) => this.#grants.replace(all))
    addTickable(this.#grants)
    const shared = { metrics: this.#metrics, topics: this.#topicChannel(), questions: this.#questions }
    this.#filters = createFilters(subjects.filters.map((create) => create(shared)))
    const places = new ConnectionPlaces(data.connectionPlaces)
    this.#spread = this.#createSpread(places)
    this.#held = this.#createHeld(places)
    addTickable(this.#held)
    const { inflight } = this.#gateway.shares
    threadScheduler.setInFlight((charge) => inflight.of(charge).heldBy(charge.source))
    const { clusters, upstreams, running, clock, random } = this.#gateway
    const contexts = this.#contexts
    const { drainTimeoutMs } = config
    const { threads } = place
    const parts = { clusters, upstreams, contexts, running, clock, random, drainTimeoutMs, threads }
    this.#follower = createSnapshotFollower(parts)
    this.#metrics.beforeSnapshot(() => this.#updateGauges())
    this.#reportLater(REPORT_MS)
    post({ type: 'online' })
    const { log } = this.#gateway
    this.#warmUp = startWarmUp?.({ data, filters: this.#filters, observers: subjects.observers, log })
  }

  /** Processed in the order sent. */
  receive(message: ToThread): void {
    switch (message.type) {
      case 'clusters':
        for (const handle of message.handles) this.#follower.stage(handle)
        return
      case 'commit':
        this.#commit(message.generation, message.removed)
        return
      case 'serving':
        this.#contexts.setOwn(message.serving)
        return
      case 'audit-policy':
        if (this.#audit !== undefined) this.#audit.policy = message.policy
        return
      case 'line':
        this.#spread.addLine(message.thread, message.port)
        return
      case 'listen':
        this.#opening = this.#listen(message.addresses)
        return
      case 'connection':
        this.#spread.handed(message.listener, message.socket)
        return
      case 'list-sizes':
        this.#lists.merge(message.cluster, message.sizes)
        return
      case 'own-listeners':
        this.#guard.setOwnListeners(message.addresses)
        return
      case 'blocked':
        this.#failures.block(message.blocks)
        return
      case 'published':
        this.#topics.deliver(message)
        return
      case 'credential-fault': {
        const live = this.#gateway.clusters.get(message.cluster)
        if (live !== undefined) live.credentialFault = message.fault
        return
      }
      case 'call':
      case 'answer':
      case 'failure':
        this.#calls.receive(message)
        return
      case 'subscribe':
      case 'credit':
      case 'unsubscribe':
        this.#streams.receive(message)
        return
      case 'leave':
        this.#leaving = true
        for (const listener of this.#listeners) listener.leave()
        return
      case 'drain':
        void this.#drain()
        return
      case 'abort':
        this.#abort()
        return
      case 'end':
        this.#end()
    }
  }

  #commit(generation: number, removed: readonly string[]): void {
    inStep('snapshot', () => {
      const changed = this.#follower.commit(generation, removed)
      this.#metrics.clustersChanged(changed.map(clusterLabels), removed)
    })
    this.#post({ type: 'applied', generation })
  }

  async #listen(addresses: readonly ListenAddress[]): Promise<void> {
    const shared = listenerOptions(this.#data.config, this.#gateway, this.#filters, this.#contexts, this.#metrics)
    await this.#warmUp?.end()
    const { threads } = this.#data.place
    const admission = createAdmission(this.#data.config, threads, this.#gateway, this.#failures, this.#metrics)
    const options = { ...shared, served: this.#held, ...admission }
    const reusePort = threads > 1
    for (const [i, address] of addresses.entries()) {
      const onSocket = (socket: Socket): void => this.#spread.accepted(i, socket)
      try {
        const { inherited, ...own } = address
        const handed = inherited !== undefined
        const proxyProtocol =
          address.proxyProtocol && proxyProtocolOptions(this.#data.config, this.#gateway, this.#metrics)
        this.#listeners.push(await listen({ ...options, ...own, proxyProtocol, handed, reusePort, onSocket }))
      } catch (error) {
        const message = errorMessage(error)
        const code = String(error instanceof Error ? Reflect.get(error, 'code') : '')
        this.#post({ type: 'failed', address, message, code })
        return
      }
    }
    if (this.#leaving) for (const listener of this.#listeners) listener.leave()
    this.#spread.open()
    const { config, place } = this.#data
    const { log } = this.#gateway
    const thread = String(place.thread)
    this.#endStalls = reportStalls({ thread, thresholdMs: config.stallThresholdMs, metrics: this.#metrics, log })
    this.#post({ type: 'listening', ports: this.#listeners.map(({ port }) => port) })
  }

  async #drain(): Promise<void> {
    this.#gateway.draining = true
    // Ports that would open behind it would stay open.
    await this.#opening
    await drainThread([this.#spread, ...this.#listeners], this.#gateway, this.#data.config.drainTimeoutMs)
    for (const observer of this.#observers) observer.flush?.()
    this.#post({ type: 'drained' })
  }

  #abort(): void {
    this.#gateway.running.abortAll()
    this.#spread.close()
    for (const listener of this.#listeners) listener.close()
  }

  #end(): void {
    clearTimeout(this.#reporting)
    this.#endStalls()
    removeTickable(this.#held)
    removeTickable(this.#grants)
    this.#spread.close()
    for (const listener of this.#listeners) listener.close()
    this.#gateway.upstreams.destroy()
    this.#calls.end('the gateway is shutting down')
    // Requests may have ended since the drain was abandoned.
    for (const observer of this.#observers) observer.flush?.()
    this.#streams.end()
    this.#outbox.flush()
    this.#postMetrics()
    this.#post({ type: 'ended' })
  }

  #reportLater(delayMs: number): void {
    this.#reporting = setTimeout(() => {
      const { clock } = this.#gateway
      const startMs = clock.monotonic()
      this.#postMetrics()
      this.#reportLater(Math.max(REPORT_MS, (clock.monotonic() - startMs) * REPORT_SHARE))
    }, delayMs)
    this.#reporting.unref()
  }

  #postMetrics(): void {
    inStep('report', () => this.#post({ type: 'metrics', metrics: this.#metrics.changes() }))
  }

  /** Its counts go before it, on the way of all others: changes have to arrive in their order, and none may be missing. */
  #report(): ThreadReport {
    const { running, tokens } = this.#gateway
    this.#postMetrics()
    return {
      running: running.size,
      clients: this.#listeners.reduce((sum, listener) => sum + listener.connections(), 0),
      tokensRemembered: tokens.size(),
    }
  }

  #updateGauges(): void {
    this.#gateway.upstreams.countConnections((cluster, endpoint, connections) => {
      this.#metrics.set(UPSTREAM_CONNECTIONS, connections, cluster, endpoint, 'h2')
    })
    const { known, unknown } = threadScheduler.takeWaited()
    this.#metrics.add(LIMITED, known, 'thread-time', 'true')
    this.#metrics.add(LIMITED, unknown, 'thread-time', 'false')
    this.#metrics.set(THREAD_WAITING, threadScheduler.keptBytes, String(this.#data.place.thread))
    if (this.#data.accessLog) this.#metrics.set(LOG_LINES_DROPPED, this.#outbox.accessDropped, 'access')
    if (this.#data.auditLog) this.#metrics.set(LOG_LINES_DROPPED, this.#outbox.auditDropped, 'audit')
  }

  #createSpread(places: ConnectionPlaces): ConnectionSpread {
    const { place } = this.#data
    return new ConnectionSpread({
      thread: place.thread,
      places,
      serve: (i, socket) => this.#serve(i, socket),
      onOffered: (result) => this.#metrics.add(CLIENTS_OFFERED, 1, String(place.thread), result),
      onUnsupported: (error) =>
        this.#gateway.log.warn('connections stay with the thread that accepts them: this Node cannot pass sockets on', {
          thread: place.thread,
          error: error.message,
        }),
    })
  }

  #createHeld(places: ConnectionPlaces): HeldConnections {
    const { config, place } = this.#data
    return new HeldConnections({
      thread: place.thread,
      places,
      maxAgeMs: config.maxConnectionAgeMs,
      random: Math.random,
      onDrained: (reason) => this.#metrics.add(CLIENTS_DRAINED, 1, reason),
    })
  }

  #serve(listener: number, socket: Socket): void {
    const there = this.#listeners[listener]
    // Accepted before the last port was open.
    if (there === undefined) socket.destroy()
    else there.accept(socket)
  }

  #events(): Gateway['events'] {
    const always = { metrics: this.#metrics, outbox: this.#outbox, data: this.#data, policyAudit: this.#audit }
    return gatewayEvents(always, [this.#lists, ...this.#observers])
  }

  #createObservers({ observers }: ThreadSubjects): readonly SubjectObserver[] {
    const { config, place } = this.#data
    const thread: ObservedThread = {
      config,
      thread: place.thread,
      threads: place.threads,
      metrics: this.#metrics,
      answers: this.#answers,
      streams: this.#streams,
      identitiesSeen: (user) => this.#gateway.identities.report(user, this.#gateway.clock.now()),
      clock: systemClock,
    }
    return observers.flatMap((create) => create(thread))
  }

  #topicChannel(): TopicChannel {
    return {
      publish: (topic, payload) => this.#post(topic.message(payload)),
      subscribe: (topic, listener) => this.#topics.subscribe(topic, listener),
    }
  }

  #callHandlers(): CallHandlers<MainCalls> {
    return {
      ask: (asked) => this.#answers.of(asked),
      report: () => this.#report(),
      upstreams: () => [...this.#gateway.upstreams.describe()],
      profile: ({ kind, seconds }) => profileThread(kind, seconds),
      logLevel: (level) => {
        if (level !== undefined) this.#outbox.level = level
        return this.#outbox.level
      },
      shares: () => [...this.#gateway.shares.report(), ...threadScheduler.report()],
    }
  }
}

function createPolicyAudit(
  { auditLog, auditPolicy, config }: ThreadData,
  outbox: ThreadOutbox,
): PolicyAudit | undefined {
  if (!auditLog || auditPolicy === undefined) return undefined
  const { auditMaxBodyBytes: maxBodyBytes } = config
  return new PolicyAudit({ policy: auditPolicy, maxBodyBytes, write: (line) => outbox.audit(line) })
}
