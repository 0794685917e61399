// Maintains the PodProtectors of workloads: creates them, repairs them when others change them, and deletes them together with their
// workload, but never because a workload is missing. The leader writes; the other replicas watch, ready to take over.

import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { StatusError } from '../../../kube/api/status.ts'
import { errorName } from '../../../kube/controllers/error-name.ts'
import { Informer } from '../../../kube/controllers/kernel/informer.ts'
import type { Leading, Tenant } from '../../../kube/controllers/kernel/leadership.ts'
import { type ReconcileOutcome, WorkQueue } from '../../../kube/controllers/kernel/work-queue.ts'
import { POD_PROTECTORS } from '../../api/pod-protector-kind.ts'
import type { GeneratorEvents, SourceRef } from '../../core/generator/decision.ts'
import type { GeneratorKind } from '../../core/generator/kinds.ts'
import type { HistoryLimits } from '../../core/history/cell-history.ts'
import { GeneratorCache } from './cache.ts'
import { type SettleDeps, type SettleResult, settleSource, settleStray } from './settle-source.ts'

interface ProtectorGeneratorDeps {
  /** API server of the workloads. */
  readonly workloads: ObjectClient
  /** API server of the PodProtectors. */
  readonly core: ObjectClient
  /** None = only cells are removed, on request. */
  readonly kinds: readonly GeneratorKind[]
  readonly leadership: Leading
  /** The limits of this process; used to summarize the status after cells were removed. */
  readonly limits: HistoryLimits
  readonly clock: Clock
  /** In [0, 1). */
  random(): number
  readonly log: Logger
  readonly events: GeneratorEvents
  /** Interval of a full resync. Default 60 s. */
  readonly resyncMs?: number
}

export function startProtectorGenerator(deps: ProtectorGeneratorDeps): ProtectorGenerator {
  const generator = new ProtectorGenerator(deps)
  generator.start()
  return generator
}

const DEFAULT_RESYNC_MS = 60_000
const TICK_MS = 1_000
/** Workloads reconciled at once. */
const MAX_CONCURRENT = 8

export class ProtectorGenerator {
  readonly #deps: ProtectorGeneratorDeps
  readonly #cache: GeneratorCache
  readonly #queue: WorkQueue
  readonly #informers: Informer<string>[] = []
  /** Kinds that were listed at least once, and 'protectors'. */
  readonly #heard = new Set<GeneratorKind | 'protectors'>()
  readonly #reports: GeneratorReports
  /** By kind: why its objects can't be followed. */
  readonly #away = new Map<string, string>()
  #tenant: Tenant | undefined
  /** Position of the current sweep. */
  #swept: Iterator<string> = [].values()
  #stopped = false

  constructor(deps: ProtectorGeneratorDeps) {
    this.#deps = deps
    this.#cache = new GeneratorCache(deps.kinds)
    this.#reports = new GeneratorReports(deps.log)
    this.#queue = new WorkQueue({
      reconcile: (key) => this.#reconcile(key),
      onError: (key, error) => deps.log.error('a workload could not be processed', { workload: key, error }),
      clock: deps.clock,
      random: () => deps.random(),
      limit: MAX_CONCURRENT,
    })
  }

  /** Workloads waiting to be reconciled. */
  get queued(): number {
    return this.#queue.size
  }

  /** Why PodProtectors are not generated or repaired; '' = they are. */
  get problem(): string {
    for (const [kind, message] of this.#away) return `${kind} objects cannot be followed: ${message}`
    // Missing rights found while it led are not retried until it leads again.
    return this.#deps.leadership.isLeader() ? this.#reports.forbidden : ''
  }

  start(): void {
    const { core, workloads, kinds, resyncMs = DEFAULT_RESYNC_MS } = this.#deps
    this.#informers.push(this.#followProtectors(core))
    for (const kind of kinds) this.#informers.push(this.#followSources(workloads, kind))
    const tickMs = Math.min(TICK_MS, resyncMs)
    // In slices, so that many workloads don't block other work.
    const sweep = (): void => this.#sweep(Math.ceil((this.#cache.size * tickMs) / resyncMs))
    this.#tenant = this.#deps.leadership.run('the generator of PodProtectors', () => {
      const ticking = setInterval(sweep, tickMs)
      ticking.unref()
      this.#lookAtAll()
      return { stop: () => clearInterval(ticking) }
    })
  }

  /** No writes afterwards. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#tenant?.leave()
    await Promise.all(this.#informers.map((informer) => informer.stop()))
    await this.#queue.stop()
  }

  // === events of the API servers ===

  #followProtectors(client: ObjectClient): Informer<string> {
    return new Informer({
      client,
      kind: POD_PROTECTORS,
      keep: (object, _, key) => {
        this.#add(this.#cache.putProtector(object))
        return key
      },
      onGone: (key) => this.#add(this.#cache.removeProtector(key)),
      onChange: () => this.#hear('protectors'),
      onState: (current, message) => this.#follow('PodProtector', current, message),
    })
  }

  /** Keeps the keys of workloads in the cache. */
  #followSources(client: ObjectClient, kind: GeneratorKind): Informer<string> {
    return new Informer({
      client,
      kind: kind.resource,
      keep: (object) => {
        const key = this.#cache.putSource(kind, object)
        this.#add([key])
        return key
      },
      onGone: (key) => {
        this.#cache.removeSource(key)
        this.#reports.forget(key)
        // Its protector is dangling now, which a metric counts.
        this.#add([key])
      },
      onChange: () => this.#hear(kind),
      onState: (current, message) => this.#follow(kind.resource.kind, current, message),
    })
  }

  #hear(what: GeneratorKind | 'protectors'): void {
    if (this.#heard.has(what)) return
    this.#heard.add(what)
    this.#lookAtAll()
  }

  #follow(what: string, current: boolean, message: string): void {
    if (current) {
      this.#away.delete(what)
      this.#queue.retry()
      return
    }
    this.#away.set(what, message)
    this.#deps.log.warn('PodProtectors are generated from an outdated state', { kind: what, reason: message })
  }

  // === work ===

  #add(keys: Iterable<string>): void {
    if (!this.#mayWrite()) return
    // Most changes of a workload concern only its status.
    for (const key of keys) if (this.#concerns(key)) this.#queue.add(key)
  }

  #lookAtAll(): void {
    this.#queue.retry()
    this.#add(this.#cache.keys())
  }

  /** Reconciles the next slice. */
  #sweep(count: number): void {
    const keys: string[] = []
    while (keys.length < count) {
      const { done, value } = this.#swept.next()
      if (done === true) {
        this.#swept = this.#cache.keys()
        break
      }
      keys.push(value)
    }
    this.#add(keys)
  }

  /** Whether reconciling it would have something to do or to report. */
  #concerns(key: string): boolean {
    const subject = this.#cache.subject(key)
    if (subject === undefined || !this.#heard.has('protectors')) return false
    if ('protector' in subject)
      return this.#cache.removesCells(`${subject.protector.namespace}/${subject.protector.name}`)
    // Before the workloads of the kind were listed, none of them is missing.
    if (!this.#heard.has(subject.source.kind)) return false
    const { actions, findings, fault } = this.#cache.decide(subject.source)
    return actions.length > 0 || fault !== '' || findings.some((finding) => finding !== 'Sync')
  }

  async #reconcile(key: string): Promise<ReconcileOutcome> {
    const subject = this.#cache.subject(key)
    if (subject === undefined) {
      this.#queue.forget(key)
      return 'done'
    }
    if (!this.#mayWrite()) return 'done'
    const { workloads, core, limits, clock } = this.#deps
    const settleDeps: SettleDeps = { workloads, core, limits, now: () => clock.now(), isLeader: () => this.#mayWrite() }
    if ('source' in subject) return this.#reconcileSource(key, subject.source, settleDeps)
    try {
      await settleStray(settleDeps, subject.protector)
      this.#reports.forget(key)
      return 'done'
    } catch (error) {
      return this.#reports.failed(key, error)
    }
  }

  async #reconcileSource(key: string, ref: SourceRef, deps: SettleDeps): Promise<ReconcileOutcome> {
    const { clock, events } = this.#deps
    const beganMs = clock.monotonic()
    let error = ''
    try {
      const others = this.#cache.otherNames(ref)
      const known = this.#cache.decide(ref)
      if (known.actions.length === 0 && known.fault === '') {
        for (const finding of known.findings) events.found(ref.kind, ref.namespace, finding)
        return 'done'
      }
      const result = await settleSource(deps, ref, others)
      for (const finding of result.decision.findings) events.found(ref.kind, ref.namespace, finding)
      error = this.#reports.report(key, result)
      return 'written'
    } catch (thrown) {
      error = errorName(thrown)
      return this.#reports.failed(key, thrown)
    } finally {
      events.reconciled(ref.kind, ref.namespace, error, clock.monotonic() - beganMs)
    }
  }

  #mayWrite(): boolean {
    return !this.#stopped && this.#deps.leadership.isLeader()
  }
}

/** Logs workloads that are not protected as intended: each problem once, until it changes. */
class GeneratorReports {
  readonly #log: Logger
  readonly #said = new Map<string, string>()
  /** By workload: why its PodProtector can't be written, if a right is missing. */
  readonly #forbidden = new Map<string, string>()

  constructor(log: Logger) {
    this.#log = log
  }

  /** Which right is missing; '' = none. */
  get forbidden(): string {
    for (const message of this.#forbidden.values()) return message
    return ''
  }

  /** @returns the problem, for metrics; '' = none */
  report(key: string, { decision, facts }: SettleResult): string {
    this.#forbidden.delete(key)
    if (decision.fault === '') this.#said.delete(key)
    else if (facts?.requirement.kind === 'unclear') this.#say(key, facts.requirement.message)
    else
      this.#say(key, 'it is being deleted without the finalizer of the generator: its PodProtector will be left behind')
    return decision.fault
  }

  failed(key: string, error: unknown): ReconcileOutcome {
    // Another client wrote first, or the object is gone.
    if (error instanceof StatusError && error.code === 409) return 'conflict'
    if (error instanceof StatusError && error.code === 403) this.#forbidden.set(key, errorMessage(error))
    else this.#forbidden.delete(key)
    this.#say(key, errorMessage(error))
    return 'failed'
  }

  forget(key: string): void {
    this.#forbidden.delete(key)
    this.#said.delete(key)
  }

  #say(key: string, message: string): void {
    if (this.#said.get(key) === message) return
    this.#said.set(key, message)
    this.#log.warn('a workload is not protected as it should be', { workload: key, reason: message })
  }
}
