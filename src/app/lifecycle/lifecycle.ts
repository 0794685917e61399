// The life of the process: start, ready, drain, stop. `starting` until configuration and first health checks are in, `ready`,
// `leaving` from SIGTERM for --shutdown-delay, `draining`, `stopped`.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Check } from '../../admin/routes.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { Logger } from '../../api/ports/ports.ts'
import type { LineWriter } from '../../io/logs/line-writer.ts'
import type { LeveledLogger } from '../../io/logs/log.ts'
import type { RecentLines } from '../../io/logs/recent-lines.ts'
import type { ProcessMetrics } from '../../io/metrics/process-metrics.ts'
import { serverSeriesText } from '../../io/metrics/server-series.ts'
import { followWebhookKubeconfig, type OpenWebhook } from '../audit/outputs.ts'
import { AUDIT_POLICY_FLAG, readAuditPolicyFile } from '../audit/policy-file.ts'
import { certificatesText, type OwnCertificate, warnOfExpiry } from '../certificates/own-certificates.ts'
import type { Config } from '../config/config.ts'
import { ReloadedFiles } from '../config/reloaded-files.ts'
import { Dashboard } from '../dashboard/dashboard.ts'
import { HealthPort } from '../health/health-port.ts'
import type { AdminPort } from '../insight/admin-port.ts'
import { advertisedAddress, KnownReplicas } from '../insight/known-replicas.ts'
import { LogLevels } from '../insight/log-levels.ts'
import { DependencyLoops } from '../last-good/dependency-loops.ts'
import type { LastGoodStates } from '../last-good/states.ts'
import type { MemoryPlan } from '../memory/memory-plan.ts'
import type { ObjectPlane } from '../object-plane/object-plane.ts'
import type { Protection } from '../protection/protection.ts'
import { type RunningScaleUpGuards, startScaleUpGuards } from '../scale/scale-up-guards.ts'
import { reportStalls } from '../stalls/report-stalls.ts'
import { autoDegradeText } from '../statuses/auto-degrade.ts'
import { autoscalersText } from '../statuses/autoscalers.ts'
import { type Statuses, startStatuses } from '../statuses/statuses.ts'
import type { Outputs } from '../wiring/outputs.ts'
import { ownListeners } from '../wiring/own-listeners.ts'
import type { WiredGateway } from '../wiring/wire.ts'
import { openAdminListener } from './admin-listener.ts'
import { describeState } from './describe.ts'
import { readinessOf } from './readiness.ts'
import type { RunningGateway } from './running-gateway.ts'

const IN_FORCE_LOOK_MS = 5
/** A start waits this long for PodProtectors and guards. */
const KNOWN_WITHIN_MS = 3_000
const KNOWN_WITHIN_AWAY_MS = 500

export interface LifecycleDeps {
  readonly memory: MemoryPlan
  readonly parts: WiredGateway
  readonly plane: ObjectPlane
  readonly protection: Protection
  readonly processMetrics: ProcessMetrics
  readonly log: Logger
  readonly outputs: Pick<Outputs, 'audit' | 'auditWebhook'> & {
    /** The last lines of the process log. */
    readonly recent: RecentLines
  }
  /** Closed when everything else has ended. */
  readonly outlets: AsyncDisposableStack
  readonly lastGood: LastGoodStates
}

export class Lifecycle implements RunningGateway {
  readonly #config: Config
  readonly #memory: MemoryPlan
  readonly #parts: WiredGateway
  readonly #plane: ObjectPlane
  readonly #protection: Protection
  readonly #processMetrics: ProcessMetrics
  #statuses: Statuses | undefined
  #scaleUpGuards: RunningScaleUpGuards | undefined
  readonly #log: Logger
  readonly #outlets: AsyncDisposableStack
  readonly #audit: LineWriter | undefined
  readonly #auditWebhook: OpenWebhook | undefined
  readonly #logLevels: LogLevels
  readonly #recent: RecentLines
  readonly #lastGood: LastGoodStates
  #state: 'starting' | 'ready' | 'leaving' | 'draining' | 'stopped' = 'starting'
  #synced = false
  #probed = false
  #ports: readonly number[] = []
  #admin: AdminPort | undefined
  #health: HealthPort | undefined
  #stopping: Promise<void> | undefined
  readonly #drainNow = new AbortController()
  #dashboard: Dashboard | undefined
  #auditPolicy: ReloadedFiles | undefined
  #auditKubeconfig: ReloadedFiles | undefined
  #unfollow: () => void = () => undefined
  #endWarnings: () => void = () => undefined
  #endStalls: () => void = () => undefined

  constructor(deps: LifecycleDeps) {
    const { memory, parts, plane, protection, processMetrics, log, outputs, outlets, lastGood } = deps
    const { config } = memory
    this.#config = config
    this.#memory = memory
    this.#parts = parts
    this.#plane = plane
    this.#protection = protection
    this.#processMetrics = processMetrics
    this.#log = log
    this.#outlets = outlets
    this.#audit = outputs.audit
    this.#auditWebhook = outputs.auditWebhook
    this.#recent = outputs.recent
    this.#logLevels = new LogLevels({
      main: 'level' in log ? (log as LeveledLogger) : undefined,
      usual: config.logLevel,
      setThreads: (level) => parts.pool.logLevel(level),
      log,
      now: () => parts.clock.now(),
    })
    this.#lastGood = lastGood
  }

  get ports(): readonly number[] {
    return this.#ports
  }

  get controlPort(): number {
    return this.#plane.port
  }

  get webhookPort(): number {
    return this.#protection.port
  }

  get adminKubeconfig(): string {
    return this.#plane.adminKubeconfig
  }

  get objects(): ObjectClient | undefined {
    return this.#plane.client
  }

  get adminPort(): number {
    return this.#admin?.port ?? 0
  }

  get healthPort(): number {
    return this.#health?.port ?? 0
  }

  /** The admin and health listeners open first, so that /readyz can report what is missing; the proxy ports open last. */
  async start(): Promise<void> {
    const { source, probes, changes, pool } = this.#parts
    const dashboard = await this.#openListeners()
    pool.takeInherited(this.#config.listen)
    this.#tellOwnListeners()
    pool.start()
    const loops = new DependencyLoops(this.#config, this.#log)
    // Before what may wait for a server behind this gateway.
    void loops.look()
    await this.#plane.start()
    await source.start(
      (change) =>
        void changes.applyChange(change).then(
          () => this.#plane.applied?.(change),
          (error: unknown) => this.#onNotApplied(error),
        ),
    )
    this.#synced = true
    void loops.look([...this.#parts.clusters.values()].map(({ compiled }) => compiled))
    this.#lastGood.start()
    dashboard.start()
    this.#unfollow = changes.onApplied(() => this.#protection.update())
    await this.#protection.start()
    this.#scaleUpGuards = startScaleUpGuards({
      config: this.#config,
      client: this.#plane.client,
      calls: this.#processMetrics.calls,
      log: this.#log,
      ...this.#parts,
    })
    // A source that is away has been waited for.
    const withinMs = this.#lastGood.serves ? KNOWN_WITHIN_AWAY_MS : KNOWN_WITHIN_MS
    const known = [this.#protection.known(withinMs), this.#scaleUpGuards?.known(withinMs)]
    await Promise.all([probes.firstRound(), pool.online(), ...known])
    await pool.applied()
    this.#probed = true
    this.#ports = await pool.listen(this.#config.listen)
    this.#tellOwnListeners()
    this.#state = 'ready'
    this.#endStalls = this.#reportStalls()
    this.#parts.reload.start()
    this.#auditPolicy = this.#followAuditPolicy()
    this.#auditKubeconfig = this.#auditWebhook && followWebhookKubeconfig(this.#auditWebhook, this.#log)
    this.#endWarnings = warnOfExpiry(() => this.#certificates(), this.#parts.clock, this.#log)
    const { calls } = this.#processMetrics
    this.#statuses = startStatuses(
      this.#config,
      this.#parts,
      this.#plane.client,
      this.#protection,
      calls,
      this.#log,
      advertisedAddress(this.#config, this.adminPort),
    )
  }

  /** What the gateway must not be made to connect to. Again when all ports are known. */
  #tellOwnListeners(): void {
    const { adminPort: admin, healthPort: health, controlPort: control, webhookPort: webhook } = this
    const addresses = ownListeners(this.#config, { listen: this.#ports, admin, health, control, webhook })
    this.#parts.guard.setOwnListeners(addresses)
    this.#parts.pool.ownListeners(addresses)
  }

  /** For health, metrics and administration. @throws {UserError} */
  async #openListeners(): Promise<Dashboard> {
    const metrics = { contentType: this.#parts.metrics.contentType, text: () => this.#metricsText() }
    const checks = { live: () => [], ready: () => this.#readiness() }
    const replicas = this.#replicas()
    const dashboard = new Dashboard({
      config: this.#config,
      parts: this.#parts,
      log: this.#log,
      client: this.#plane.client,
      protection: this.#protection,
      replicas,
      certificates: () => this.#certificates(),
    })
    this.#dashboard = dashboard
    this.#admin = await openAdminListener({
      config: this.#config,
      parts: this.#parts,
      plane: this.#plane,
      log: this.#log,
      audit: this.#audit,
      metrics,
      checks,
      replicas,
      logLevels: this.#logLevels,
      recent: this.#recent,
      dashboard,
      describe: () => this.#describe(),
    })
    this.#health = await HealthPort.open({
      config: this.#config,
      state: checks,
      metrics,
      post: this.#plane.review,
      log: this.#log,
    })
    return dashboard
  }

  #reportStalls(): () => void {
    const { stallThresholdMs: thresholdMs } = this.#config
    return reportStalls({ thread: 'main', thresholdMs, metrics: this.#parts.recorder, log: this.#log })
  }

  #describe(): Promise<object> {
    return describeState(
      this.#parts,
      this.#memory,
      this.#protection.describe(),
      this.#scaleUpGuards?.describe() ?? null,
      this.#draining,
    )
  }

  #followAuditPolicy(): ReloadedFiles | undefined {
    const file = this.#config.auditPolicyFile
    if (file === '') return undefined
    const [log, { pool }] = [this.#log, this.#parts]
    const label = AUDIT_POLICY_FLAG.slice('--'.length)
    const read = (): void => pool.auditPolicy(readAuditPolicyFile(file, log))
    return new ReloadedFiles({ label, what: 'the audit policy', files: [file], read, log })
  }

  #replicas(): KnownReplicas {
    const { client, peerAccess } = this.#plane
    const admin = (): AdminPort | undefined => this.#admin
    return new KnownReplicas({ config: this.#config, client, access: peerAccess, admin, log: this.#log })
  }

  /** A bug: the gateway must survive for the next change. */
  #onNotApplied(error: unknown): void {
    this.#log.error('the configuration could not be applied', { error })
  }

  async #metricsText(): Promise<string> {
    const texts = [this.#parts.metrics, this.#protection.metrics, this.#processMetrics].map((part) => part.text())
    texts.push(certificatesText(this.#certificates(), this.#parts.clusters, this.#reloads()))
    const { autoscalers, autoDegrade } = this.#statuses ?? {}
    texts.push(Promise.resolve(this.#lastGood.text()))
    texts.push(Promise.resolve(this.#plane.text()), Promise.resolve(serverSeriesText(this.#parts.servers.all())))
    return `${(await Promise.all(texts)).join('')}${autoscalersText(autoscalers)}${autoDegradeText(autoDegrade)}`
  }

  #certificates(): readonly OwnCertificate[] {
    const serving: OwnCertificate = { name: 'serving', pem: this.#parts.reload.pair.cert }
    const listeners = [this.#admin, this.#health].flatMap((port) => port?.certificates ?? [])
    const sharing = this.#parts.sharing?.certificates ?? []
    return [serving, ...this.#plane.certificates, ...this.#protection.certificates, ...listeners, ...sharing]
  }

  /** Of files that are read again. */
  #reloads(): ReadonlyMap<string, boolean> {
    const { reload, sharing, tracing } = this.#parts
    const others = [this.#plane, this.#protection, this.#admin, this.#health, sharing, tracing].flatMap((part) => [
      ...(part?.reloads ?? []),
    ])
    const own = [this.#auditPolicy, this.#auditKubeconfig].flatMap((files): [string, boolean][] =>
      files === undefined ? [] : [[files.label, files.inForce]],
    )
    return new Map([...reload.reloads, ...others, ...own])
  }

  get #draining(): boolean {
    return this.#state === 'draining' || this.#state === 'stopped'
  }

  applied(): Promise<void> {
    return this.#parts.pool.applied()
  }

  async inForce(clusters: number): Promise<void> {
    while (this.#parts.clusters.size < clusters) await sleep(IN_FORCE_LOOK_MS)
    await this.applied()
    await this.#parts.probes.firstRound()
  }

  async crashThread(thread: number): Promise<void> {
    await this.#parts.pool.slots[thread]?.terminate()
  }

  #readiness(): readonly Check[] {
    const checks = readinessOf({
      synced: this.#synced,
      probed: this.#probed,
      listening: this.#ports.length > 0,
      serving: this.#anyThreadListens(),
      stopping: this.#stopping !== undefined,
      lastGood: this.#lastGood.checks(),
    })
    for (const { name, ok } of checks) if (!ok) this.#processMetrics.checkFailed(name)
    return checks
  }

  #anyThreadListens(): boolean {
    return this.#parts.pool.slots.some(({ state }) => state === 'listening')
  }

  stop(): Promise<void> {
    if (this.#stopping === undefined) this.#stopping = this.#leave()
    else if (this.#state === 'leaving') this.#drainNow.abort()
    else this.#parts.pool.abort()
    return this.#stopping
  }

  /** Whoever polls readyz learns of it while the ports still take connections. */
  async #leave(): Promise<void> {
    const { shutdownDelayMs } = this.#config
    if (shutdownDelayMs > 0) {
      this.#state = 'leaving'
      this.#parts.pool.leave()
      this.#log.info('shutting down: readyz fails, requests are served on', { delayMs: shutdownDelayMs })
      await sleep(shutdownDelayMs, undefined, { signal: this.#drainNow.signal }).catch(() => undefined)
    }
    await this.#drain()
  }

  async #drain(): Promise<void> {
    const { pool } = this.#parts
    const { drainTimeoutMs } = this.#config
    this.#state = 'draining'
    this.#log.info('draining', { timeoutMs: drainTimeoutMs })
    const deadline = setTimeout(() => pool.abort(), drainTimeoutMs)
    await pool.drain()
    clearTimeout(deadline)
    await this.#end()
  }

  async #end(): Promise<void> {
    const error = await this.#stopParts()
    this.#state = 'stopped'
    this.#log.info('stopped')
    await this.#outlets.disposeAsync()
    if (error !== undefined) throw error
  }

  /** The start failed: stops what has started. Whoever has called it closes the outlets. */
  async abandon(): Promise<void> {
    await this.#stopParts()
  }

  /** All parts, in this order, each whether or not another one fails. @returns the first error */
  async #stopParts(): Promise<unknown> {
    const { probes, rights, servers, source, pool, upstreams, limits, reload, sharing, top, tracing } = this.#parts
    const stops: readonly (() => unknown)[] = [
      () => reload.stop(),
      () => top?.stop(),
      () => this.#auditPolicy?.stop(),
      () => this.#auditKubeconfig?.stop(),
      () => sharing?.stop(),
      () => this.#endWarnings(),
      () => this.#endStalls(),
      () => probes.stop(),
      () => servers.stop(),
      () => rights.stop(),
      () => this.#dashboard?.stop(),
      () => this.#statuses?.stop(),
      () => this.#unfollow(),
      () => this.#scaleUpGuards?.stop(),
      () => this.#protection.stop(),
      () => source.stop(),
      () => limits?.stop(),
      () => this.#lastGood.stop(),
      () => this.#plane.stop(),
      () => pool.end(),
      () => tracing?.stop(),
      () => upstreams.destroy(),
      () => this.#logLevels.stop(),
      () => this.#health?.stop(),
      () => this.#admin?.stop(),
    ]
    let first: unknown
    for (const stop of stops) {
      try {
        await stop()
      } catch (error) {
        first ??= error
      }
    }
    return first
  }
}
