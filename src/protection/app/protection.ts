// Wires pod protection: the ledger, the cells whose pods are counted, the webhook (webhook.ts), the generator, and their metrics. It starts when an
// UpstreamCluster or a flag requires it; until then nothing is read and nothing runs.

import { setTimeout as sleep } from 'node:timers/promises'
import type { RevocationCheck } from '../../apiserver/access/revoked-credentials.ts'
import type { PodProtectionInForce, ProtectorRows } from '../../gateway/api/pod-protection-in-force.ts'
import type { GatewayProtection } from '../../gateway/api/upstream-cluster/status.ts'
import type { CellClocks, ClockSkew } from '../../gateway/core/clocks/cell-clock.ts'
import { objectsOf } from '../../gateway/io/last-good/format.ts'
import type { LastGoodKeeper } from '../../gateway/io/last-good/keeper.ts'
import type { PortAdmission } from '../../gateway/io/listener/connections.ts'
import type { Exposition } from '../../gateway/metrics/exposition.ts'
import type { ClusterTable } from '../../gateway/state/clusters.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { LabelSelector } from '../../kit/api/validation/label-selector-schema.ts'
import { parseSocketAddress } from '../../kit/core/listen-address.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import type { AnswersThreads } from '../../kit/core/topics/questions.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { Leadership } from '../../kube/controllers/kernel/leadership.ts'
import { createKubeClient, type KubeClient } from '../../kube/io/client.ts'
import type { KubeCallEvents } from '../../kube/io/client-events.ts'
import { sharedFollow } from '../../kube/io/shared-follow.ts'
import type { OwnCertificate } from '../../process/certificates/own-certificates.ts'
import { stopInReverse } from '../../process/components/component.ts'
import type { Config } from '../../process/config/config.ts'
import { POD_PROTECTORS } from '../api/pod-protector-kind.ts'
import type { PodFacts } from '../api/protection.ts'
import { type StaleCellSweeper, startStaleCellSweeper } from '../controllers/aggregator/stale-cell-sweeper.ts'
import { type ProtectorGenerator, startProtectorGenerator } from '../controllers/generator/protector-generator.ts'
import { monitorProtectors, ProtectorMonitor } from '../controllers/generator/protector-monitor.ts'
import { type ProtectionLedger, startProtectionLedger } from '../controllers/ledger/ledger.ts'
import { RefusalEvents } from '../controllers/ledger/refusal-events.ts'
import type { GeneratorKind } from '../core/generator/kinds.ts'
import type { ProtectionEvents } from '../core/requests/protection-events.ts'
import { createProtectionMetrics, type ProtectionMetrics } from '../metrics/metrics.ts'
import { leadershipOf, ProtectionCells } from './cells.ts'
import { readGeneratorKinds } from './generator-config.ts'
import { type KeptProtectors, keepProtectors, type ProtectorStates } from './kept-protectors.ts'
import { protectorRows } from './protector-rows.ts'
import { ThreadDeletions } from './thread-ledger.ts'
import { PROTECTED_NAMESPACES } from './topics.ts'
import { createWebhook, type ProtectionPort, type WebhookDeps } from './webhook.ts'

interface ProtectionDeps {
  readonly config: Config
  /** The object plane's client; undefined if objects are files. */
  readonly client: ObjectClient | undefined
  /** URL of its API server; '' = it is in this process, or there is none. */
  readonly server: string
  /** Stores the PodProtectors for a start without their API server. */
  readonly lastGood: ProtectorStates
  /** Credentials revoked for the webhook; undefined = no such list. */
  readonly revoked: RevocationCheck | undefined
  /** Admission of clients at the webhook, shared with other ports. Default: limits of its own port alone. */
  readonly admission?: PortAdmission
  readonly clusters: ClusterTable
  /** A new client for an UpstreamCluster. */
  readonly clientOf: (name: string) => KubeClient
  readonly clock: Clock
  readonly clocks: CellClocks
  readonly log: Logger
  /** Notified of API server calls. */
  readonly calls: KubeCallEvents
  /** Calls the listener now and whenever UpstreamClusters have changed, until the returned function is called. */
  onApplied(listener: () => void): () => void
  /** To the gateway threads. */
  readonly topics: TopicChannel
  readonly questions: AnswersThreads
}

const KNOWN_LOOK_MS = 5
const LEADER_LEASE = 'portcullis-protection'

/** What runs once protection has started. */
interface Running {
  readonly core: ObjectClient
  readonly ledger: ProtectionLedger
  readonly refusals: RefusalEvents
  readonly cells: ProtectionCells
  readonly leadership: Leadership
  readonly sweeper: StaleCellSweeper
  readonly generator: ProtectorGenerator
}

/** Nothing runs before its start. @throws {UserError} if a kubeconfig or the generator's configuration is unusable */
export function createProtection(deps: ProtectionDeps): Protection {
  return new Protection(deps)
}

export class Protection implements PodProtectionInForce {
  readonly name = 'protection'
  readonly state = 'protection'
  readonly metrics: ProtectionMetrics
  readonly #deps: ProtectionDeps
  /** Client for --protection-kubeconfig; closed by us. */
  #ownCore: KubeClient | undefined
  /** Client for --protection-workloads-kubeconfig. */
  #ownWorkloads: KubeClient | undefined
  readonly #kinds: readonly GeneratorKind[]
  readonly #monitor = new ProtectorMonitor()
  #port: ProtectionPort | undefined
  #running: Running | undefined
  #kept: KeptProtectors | undefined
  #unfollow: () => void = () => undefined
  /** State of the watch of PodProtectors. */
  #core = { current: false, message: '', sinceMs: 0 }

  /** @throws {UserError} if a kubeconfig or the generator's configuration is unusable */
  constructor(deps: ProtectionDeps) {
    this.#deps = deps
    const { metricsByNamespace: byNamespace, metricsByUser: byUser } = deps.config.protection
    const identity = deps.config.replicaName
    this.metrics = createProtectionMetrics({ byNamespace, byUser, identity, monotonic: () => deps.clock.monotonic() })
    const { kubeconfig, context, workloadsKubeconfig, workloadsContext, generatorConfigFile } = deps.config.protection
    this.#kinds = readGeneratorKinds(generatorConfigFile)
    this.#ownCore = ownClient(kubeconfig, context, deps)
    this.#ownWorkloads = ownClient(workloadsKubeconfig, workloadsContext, deps)
    this.metrics.beforeScrape(() => {
      if (this.#running === undefined) return
      const { ledger, generator, cells } = this.#running
      const queued = new Map(cells.describe().map((each) => [each.cell, each.queued]))
      this.metrics.monitor(this.#monitor.gauges())
      this.metrics.clocks(this.#skews())
      this.metrics.queued({ writing: ledger.writing, generator: generator.queued, cells: queued })
    })
  }

  /** Port of the webhook; 0 = not open. */
  get webhookPort(): number {
    return this.#port?.port ?? 0
  }

  get certificates(): readonly OwnCertificate[] {
    for (const client of [this.#ownCore, this.#ownWorkloads]) client?.kubeconfig?.refresh()
    const clients: readonly OwnCertificate[] = [
      { name: 'protection-kubeconfig-client', pem: this.#ownCore?.kubeconfig?.clientCertificate ?? '' },
      { name: 'protection-workloads-kubeconfig-client', pem: this.#ownWorkloads?.kubeconfig?.clientCertificate ?? '' },
    ]
    return [...(this.#port?.certificates ?? []), ...clients.filter(({ pem }) => pem !== '')]
  }

  /** Keyed by file: whether its content is in force. */
  get reloads(): ReadonlyMap<string, boolean> {
    const kubeconfigs = [
      ['protection-kubeconfig', this.#ownCore],
      ['protection-workloads-kubeconfig', this.#ownWorkloads],
    ] as const
    const inForce = kubeconfigs.flatMap(([file, client]): [string, boolean][] =>
      client?.kubeconfig === undefined ? [] : [[file, client.kubeconfig.problem === '']],
    )
    return new Map([...(this.#port?.reloads ?? []), ...inForce])
  }

  exposeMetrics(into: Exposition): void {
    this.metrics.expose(into)
  }

  get podProtection(): PodProtectionInForce {
    return this
  }

  /** Answers the gateway threads, follows the UpstreamClusters, and opens the webhook, if configured. @throws {UserError} */
  async start(): Promise<void> {
    const { topics, questions, log } = this.#deps
    new ThreadDeletions({ gate: () => this.#running?.ledger, topics, questions, log }).start()
    this.#unfollow = this.#deps.onApplied(() => this.#update())
    const { listen, generatorConfigFile } = this.#deps.config.protection
    if (listen !== undefined || generatorConfigFile !== '') this.#begin()
    if (listen !== undefined) await this.#openWebhook(listen)
  }

  /** Resolves when the PodProtectors are known, or after `withinMs`: an unavailable core cluster does not block the start. */
  async known(withinMs: number): Promise<void> {
    const { clock } = this.#deps
    const deadline = clock.monotonic() + withinMs
    while (this.#running?.ledger.knowsProtectors === false && clock.monotonic() < deadline) await sleep(KNOWN_LOOK_MS)
  }

  #update(): void {
    if (this.#running === undefined && this.#isAsked()) this.#begin()
    this.#running?.cells.update()
  }

  /** For /debug/config; null = not running. */
  describe(): object | null {
    if (this.#running === undefined) return null
    const { ledger, cells, leadership } = this.#running
    const { protectors } = ledger
    return {
      protectorsKnown: protectors.synced,
      protectors: [...protectors.values()].length,
      leader: leadership.isLeader(),
      generator: this.#generatorMessage(),
      cells: cells.describe(),
      clocks: Object.fromEntries(this.#skews()),
    }
  }

  /** PodProtectors with pods in a cell; none until they are known. */
  protectorsIn(cell: string): ProtectorRows {
    const running = this.#running
    if (running === undefined) return { rows: [], omitted: 0 }
    const { config, clock } = this.#deps
    const select = (namespace: string, selector: LabelSelector): Iterable<PodFacts> | undefined =>
      running.cells.select(cell, namespace, selector)
    return protectorRows(cell, running.ledger.protectors.values(), config.protection.settings, clock.now(), select)
  }

  /** How this replica protects the pods of a cluster; undefined = the cluster does not require it. */
  stateOf(cluster: string): GatewayProtection | undefined {
    const protection = this.#deps.clusters.get(cluster)?.compiled.protection
    if (protection === undefined) return undefined
    const { cell, aggregation } = protection
    const say = (state: GatewayProtection['state'], sinceMs: number, message = ''): GatewayProtection => {
      return { cell, state, since: metaTime(sinceMs), ...(message !== '' && { message }) }
    }
    const core = this.#core
    if (core.message !== '') {
      const why = withRights(core.message, 'deploy/rbac/protection-core.yaml')
      return say('Broken', core.sinceMs, `the PodProtectors cannot be followed: ${why}`)
    }
    if (!core.current) return say('Starting', core.sinceMs)
    const counts = this.#running?.cells.describe().find((one) => one.cell === cell)
    const without = this.#generatorMessage()
    if (!aggregation.enabled || counts?.leads !== true) return say('Judging', core.sinceMs, without)
    if (counts.message !== '') return say('Broken', counts.sinceMs, `the pods cannot be counted: ${counts.message}`)
    return say(counts.current ? 'Counting' : 'Starting', counts.sinceMs, without)
  }

  /** Without PodProtectors nothing is protected, however well pods are counted. */
  #generatorMessage(): string {
    const problem = this.#running?.generator.problem ?? ''
    if (problem === '') return ''
    return `PodProtectors are not generated: ${withRights(problem, 'deploy/rbac/protection-generator.yaml')}`
  }

  async stop(): Promise<void> {
    this.#unfollow()
    this.#kept?.stop()
    const { leadership, ledger, cells, refusals, sweeper, generator } = this.#running ?? {}
    const clients = [this.#ownWorkloads, this.#ownCore].map((client) => ({ stop: () => client?.close() }))
    const webhook = { stop: () => this.#port?.close() }
    const parts = [...clients, leadership, ledger, cells, refusals, sweeper, generator, webhook]
    await stopInReverse(parts, this.#deps.log)
  }

  /** Keyed by cell, if known. */
  #skews(): ReadonlyMap<string, ClockSkew> {
    const { clock, clocks } = this.#deps
    const [nowMs, monotonicMs] = [clock.now(), clock.monotonic()]
    const skews = new Map<string, ClockSkew>()
    for (const { cell } of this.#running?.cells.describe() ?? []) {
      const skew = clocks.skew(cell, nowMs, monotonicMs)
      if (skew !== undefined) skews.set(cell, skew)
    }
    return skews
  }

  #isAsked(): boolean {
    for (const { compiled } of this.#deps.clusters.values()) if (compiled.protection !== undefined) return true
    return false
  }

  #begin(): void {
    if (this.#running !== undefined) return
    this.#core = { ...this.#core, sinceMs: this.#deps.clock.now() }
    const { config, client, clock, clocks, log, topics } = this.#deps
    const core = this.#ownCore ?? client
    if (core === undefined) {
      log.warn('pods cannot be protected: with --source files no API server holds PodProtectors', {
        fix: 'give --protection-kubeconfig, or another --source',
      })
      return
    }
    const { settings } = config.protection
    const { metrics } = this
    const kept = this.#keeper()
    const events: ProtectionEvents = {
      ...metrics.events,
      reviewed: (request, verdict, protectors, durationMs) => {
        metrics.events.reviewed(request, verdict, protectors, durationMs)
        this.#running?.refusals.reviewed(request, verdict)
      },
      following: (current, message) => {
        metrics.events.following(current, message)
        this.#core = { current, message, sinceMs: clock.now() }
        kept?.current(current)
      },
    }
    const ledger = startProtectionLedger({
      client: core,
      settings,
      clock,
      clocks,
      random: Math.random,
      log,
      events,
      onNamespaces: (namespaces) => topics.publish(PROTECTED_NAMESPACES, namespaces),
    })
    const { protectors } = ledger
    const alone = config.source === 'embedded' && this.#ownCore === undefined
    const replica = config.replicaName
    const cells = new ProtectionCells({ ...this.#deps, core, alone, replica, protectors, settings, metrics })
    const leadership = leadershipOf({ core, alone, replica, log, metrics }, LEADER_LEASE)
    const refusals = new RefusalEvents({
      core,
      worker: (cell) => cells.clients(cell)[0],
      protectorUid: (key) => protectors.get(key)?.protector.metadata.uid ?? '',
      replica,
      clock,
      log,
    })
    const sweeper = startStaleCellSweeper({ core, protectors, leadership, settings, clock, log })
    const generator = startProtectorGenerator({
      workloads: this.#ownWorkloads ?? core,
      core,
      kinds: this.#kinds,
      leadership,
      limits: settings,
      clock,
      random: Math.random,
      log,
      events: metrics.generator,
    })
    monitorProtectors(this.#monitor, protectors)
    if (kept !== undefined) this.#kept = keepProtectors(ledger, kept, this.#deps.lastGood.waitMs)
    this.#running = { core, ledger, refusals, cells, leadership, sweeper, generator }
    cells.update()
  }

  /** undefined = the PodProtectors are in this process. */
  #keeper(): LastGoodKeeper | undefined {
    const { config, server, lastGood } = this.#deps
    const { context } = this.#ownCore === undefined ? config : config.protection
    const core = this.#ownCore?.server ?? server
    return core === '' ? undefined : lastGood.keeperIfWritable('protectors', objectsOf(core, context))
  }

  async #openWebhook(listen: string): Promise<void> {
    const running = this.#running
    const address = parseSocketAddress(listen)
    if (running === undefined || 'error' in address) return
    const { ledger, cells } = running
    const { log } = this.#deps
    const onReview: WebhookDeps['onReview'] = (outcome) => this.metrics.webhookAnswered(outcome)
    const { port, handler } = createWebhook({ ...this.#deps, listen: address, ledger, cells, onReview })
    this.#port = port
    await port.open(handler)
    log.info('the protection webhook is open', { address: listen, port: port.port })
  }
}

/** The files bind the ServiceAccount of a gateway in the cluster; a gateway elsewhere has its own user. */
function withRights(message: string, file: string): string {
  if (!/forbidden/i.test(message)) return message
  return `${message}; apply ${file}, with the user named here in place of the ServiceAccount portcullis-system/portcullis`
}

function ownClient(
  kubeconfigFile: string,
  context: string,
  { log, calls }: Pick<ProtectionDeps, 'log' | 'calls'>,
): KubeClient | undefined {
  if (kubeconfigFile === '') return undefined
  const client = createKubeClient({ kubeconfigFile, log, calls, ...(context !== '' && { context }) })
  // Only a leader uses the workloads' client; its certificate's expiry must be known earlier.
  client.kubeconfig?.refresh()
  return { ...client, follow: sharedFollow(client, [], log, [POD_PROTECTORS]) }
}
