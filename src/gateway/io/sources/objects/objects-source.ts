// UpstreamClusters and the Secrets they name from an API server: the embedded one, or a Kubernetes cluster's. What is in force stays in force,
// whatever happens to the server; nothing is kept on disk, so a start needs the server once.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { nameOf } from '../../../../kit/api/json/json-object.ts'
import { compareText } from '../../../../kit/api/json/sorted-json.ts'
import type { Logger } from '../../../../kit/api/ports.ts'
import { UserError } from '../../../../kit/api/validation/field-errors.ts'
import type { PemChecks } from '../../../../kit/api/validation/pem-checks.ts'
import type { Following, ObjectClient } from '../../../../kube/api/object-client.ts'
import type { ResolvedCluster, ResourceSource, SourceChange, SourceError } from '../../../api/resource-source.ts'
import type { ClusterCheckOptions } from '../../../api/upstream-cluster/checks.ts'
import { UPSTREAM_CLUSTERS } from '../../../api/upstream-cluster-kind.ts'
import { NamesByKey } from '../../../core/cluster/names-by-key.ts'
import { sharedReleaseFix, sharedReleaseOf } from '../../secrets/secret-release.ts'
import { UsableSecrets } from '../../secrets/usable-secrets.ts'
import { ClusterObjects, isWaiting } from './clusters.ts'

export interface ObjectsSourceOptions {
  readonly client: ObjectClient
  readonly pem: PemChecks
  readonly log: Logger
  /** Features of this gateway, for checks; file references are always errors. */
  readonly checks?: ClusterCheckOptions
  /** Namespaces whose Secrets need no label (secret-release.ts). */
  readonly secretNamespaces: readonly string[]
  /** Deadline for `start` to reach the server, milliseconds. Default 30 s. */
  readonly startTimeoutMs?: number
  /** Milliseconds between two reads of a Secret that cannot be watched. Default 60 s. */
  readonly refreshMs?: number
  /** Stores what is in force for a start without the server. Default: not stored. */
  readonly lastGood?: LastGoodClusters
}

/** The last state in force on disk, with the bytes of Secrets. */
export interface LastGoodClusters {
  /** Milliseconds that a start waits for the server before it uses what is stored. */
  readonly waitMs: number
  /** undefined = nothing usable. */
  restore(): ReadonlyMap<string, ResolvedCluster> | undefined
  /** @param changed absent = any may be new or gone */
  keep(clusters: ReadonlyMap<string, ResolvedCluster>, changed: ReadonlySet<string> | undefined): void
  /** Whether what was passed to keep() is the server's current state. */
  current(current: boolean): void
}

/** A change is delivered after this quiet period, */
const QUIET_MS = 10
/** and under constant change after this long at the latest. */
const LONGEST_WAIT_MS = 500
/** Checking thousands of objects must not block the thread. */
const SLICE_MS = 10
const START_TIMEOUT_MS = 30_000
const REFRESH_MS = 60_000
const NOTHING: ReadonlySet<string> = new Set()

/** `start` rejects with a UserError if the server was not reached for 30 s. Afterwards only `stop` ends the source. */
export function createObjectsSource(options: ObjectsSourceOptions): ResourceSource {
  return new ObjectsSource(options)
}

class ObjectsSource implements ResourceSource {
  readonly #client: ObjectClient
  readonly #log: Logger
  readonly #startTimeoutMs: number
  readonly #secrets: UsableSecrets
  readonly #clusters: ClusterObjects
  /** Secrets released to all clusters, and the clusters that refer to them. */
  readonly #shared = new NamesByKey()
  #onChange: (change: SourceChange) => void = () => undefined
  #following: Following | undefined
  /** Whether all objects have been listed once. */
  #synced = false
  /** The first delivery waits for referenced Secrets, but not forever. */
  #patient = true
  /** `restored`: what a previous process had in force. */
  #delivered: 'nothing' | 'restored' | 'something' = 'nothing'
  readonly #lastGood: LastGoodClusters | undefined
  #onFirst: () => void = () => undefined
  /** Why objects cannot be watched now; '' = they are. */
  #fault = ''
  #faultChanged = false
  #quiet: NodeJS.Timeout | undefined
  #firstAt = 0
  #work: Promise<void> | undefined
  #stopped = false

  constructor(options: ObjectsSourceOptions) {
    const { client, pem, log, checks, secretNamespaces, startTimeoutMs, refreshMs, lastGood } = options
    this.#client = client
    this.#lastGood = lastGood
    this.#log = log
    this.#startTimeoutMs = startTimeoutMs ?? START_TIMEOUT_MS
    this.#secrets = new UsableSecrets({
      client,
      log,
      namespaces: secretNamespaces,
      refreshMs: refreshMs ?? REFRESH_MS,
      onChange: (names) => {
        this.#clusters.secretsChanged(names)
        this.#schedule()
      },
    })
    this.#clusters = new ClusterObjects({ secrets: this.#secrets, pem, ...(checks !== undefined && { checks }) })
  }

  async start(onChange: (change: SourceChange) => void): Promise<void> {
    this.#onChange = onChange
    const first = new Promise<void>((resolve) => {
      this.#onFirst = resolve
    })
    this.#follow()
    const { waitMs = 0 } = this.#lastGood ?? {}
    if (this.#lastGood !== undefined && !(await isWithin(first, waitMs)) && this.#restore()) return
    if (await isWithin(first, Math.max(0, this.#startTimeoutMs - waitMs))) return
    if (this.#synced) {
      // Clusters waiting for a Secret must not delay the others.
      this.#patient = false
      this.#schedule()
      await first
      return
    }
    await this.stop()
    throw new UserError(
      `no UpstreamClusters within ${this.#startTimeoutMs / 1000} s: ${this.#fault || 'no answer'}`,
      'a first start needs the API server, and a later one too where the last good state in the data directory is lost: check the ' +
        'kubeconfig, that the CRDs are installed, and that its user may list and watch upstreamclusters.proxy.kubegateway.io',
    )
  }

  /** False if there is nothing to start with. */
  #restore(): boolean {
    const restored = this.#stopped ? undefined : this.#lastGood?.restore()
    if (restored === undefined) return false
    this.#clusters.restore(restored)
    this.#delivered = 'restored'
    this.#tell(undefined)
    // The objects may have arrived in the meantime, and wait for Secrets.
    if (this.#synced) this.#schedule()
    this.#onFirst()
    return true
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#quiet)
    this.#onFirst()
    await Promise.all([this.#following?.stop(), this.#secrets.stop()])
    await this.#work
  }

  #follow(): void {
    this.#following = this.#client.follow(UPSTREAM_CLUSTERS, '', {
      onReplace: (objects) => {
        this.#synced = true
        this.#clusters.replace(objects)
        this.#schedule()
      },
      onChange: (type, object) => {
        if (type === 'DELETED') this.#clusters.remove(nameOf(object))
        else this.#clusters.put(object)
        if (this.#clusters.hasWork) this.#schedule()
      },
      onState: (current, message) => this.#setFault(current ? '' : message || 'the API server does not answer'),
    })
  }

  #setFault(fault: string): void {
    if (fault === this.#fault) return
    const clusters = this.#clusters.inForce.size
    if (fault === '') this.#log.info('UpstreamClusters are watched again', { clusters })
    else if (this.#fault === '') {
      this.#log.warn('UpstreamClusters cannot be watched; the present configuration stays in force', {
        why: fault,
        clusters,
      })
    }
    this.#fault = fault
    this.#faultChanged = true
    this.#schedule()
  }

  /** Something changed: delivers it after a quiet period, so that a burst is one delivery. */
  #schedule(): void {
    if (this.#stopped) return
    const now = performance.now()
    if (this.#quiet === undefined) {
      this.#firstAt = now
      this.#quiet = setTimeout(() => {
        this.#quiet = undefined
        this.#work = (this.#work ?? Promise.resolve()).then(() => this.#process())
      }, QUIET_MS)
    } else if (now - this.#firstAt < LONGEST_WAIT_MS - QUIET_MS) this.#quiet.refresh()
  }

  /** Never rejects. */
  async #process(): Promise<void> {
    try {
      for (let sliceEnd = performance.now() + SLICE_MS; this.#clusters.checkNext(); ) {
        if (performance.now() < sliceEnd) continue
        await yieldToEventLoop()
        if (this.#stopped) return
        sliceEnd = performance.now() + SLICE_MS
      }
      this.#deliver()
    } catch (error) {
      // The source must survive for the next change.
      this.#log.error('the configuration could not be applied', { error })
    }
  }

  #deliver(): void {
    const isFirst = this.#delivered !== 'something'
    if (this.#stopped) return
    if (!this.#synced) {
      if (this.#delivered === 'restored' && this.#faultChanged) this.#tell(NOTHING)
      return
    }
    // Claims are decided among all objects at once, and clusters appear once complete.
    if (this.#delivered === 'nothing' && this.#patient && this.#clusters.isWaiting) return
    const { changed, reported } = this.#clusters.settle()
    for (const [name, before] of reported) this.#logProblems(name, before)
    this.#logShared(reported)
    const news = changed.size > 0 || reported.size > 0 || this.#faultChanged
    this.#delivered = 'something'
    if (isFirst || news) this.#tell(isFirst ? undefined : changed)
    if (isFirst || changed.size > 0) this.#lastGood?.keep(this.#clusters.inForce, isFirst ? undefined : changed)
    this.#lastGood?.current(this.#fault === '')
    if (isFirst) this.#onFirst()
  }

  #tell(changed: ReadonlySet<string> | undefined): void {
    this.#faultChanged = false
    const problems = [...this.#faultProblem(), ...this.#clusters.problems]
    const change = { clusters: new Map(this.#clusters.inForce), problems, ...(changed !== undefined && { changed }) }
    try {
      this.#onChange(change)
    } catch (error) {
      this.#log.error('the configuration could not be applied', { error })
    }
  }

  #faultProblem(): readonly SourceError[] {
    if (this.#fault === '') return []
    const message = `UpstreamClusters cannot be watched; the previous configuration stays in force: ${this.#fault}`
    const fix = 'changes come into force when the API server answers again'
    return [{ reason: 'FieldValueInvalid', file: '', line: 0, path: '', message, fix, severity: 'warning' }]
  }

  /** Logs each problem once, for as long as it lasts. */
  #logProblems(cluster: string, reported: readonly SourceError[]): void {
    const isLogged = (problem: SourceError): boolean => !isWaiting(problem) && sharedReleaseOf(problem) === ''
    const before = reported.filter(isLogged)
    const now = this.#clusters.problemsOf(cluster).filter(isLogged)
    const isInForce = this.#clusters.inForce.has(cluster)
    for (const { path, message, fix, severity } of now) {
      if (before.some((known) => known.path === path && known.message === message)) continue
      const fields = { cluster, path, problem: message, fix }
      if (severity === 'warning') this.#log.warn('configuration warning', fields)
      else if (isInForce) this.#log.error('invalid configuration; the previous one stays in force', fields)
      else this.#log.error('invalid configuration; the cluster is not served', fields)
    }
    if (before.length > 0 && now.length === 0) this.#log.info('the configuration has no more problems', { cluster })
  }

  /** Logs each Secret released to all clusters once, for as long as it is: many clusters may refer to one. */
  #logShared(reported: ReadonlyMap<string, readonly SourceError[]>): void {
    const found = new Map<string, string>()
    for (const [cluster, before] of reported) {
      const now = this.#clusters.problemsOf(cluster)
      for (const problem of now) {
        const secret = sharedReleaseOf(problem)
        if (secret === '') continue
        if (this.#shared.get(secret).size === 0) found.set(secret, problem.message)
        this.#shared.add(secret, cluster)
      }
      for (const problem of before) {
        if (!now.some(({ message }) => message === problem.message))
          this.#shared.remove(sharedReleaseOf(problem), cluster)
      }
    }
    for (const [secret, message] of found) {
      const clusters = [...this.#shared.get(secret)].sort(compareText)
      this.#log.warn(message, { clusters, fix: sharedReleaseFix(secret, clusters) })
    }
  }
}

/** Whether a promise that never rejects resolves in time. */
async function isWithin(promise: Promise<void>, ms: number): Promise<boolean> {
  let late: NodeJS.Timeout | undefined
  const timeout = new Promise<false>((resolve) => {
    late = setTimeout(resolve, ms, false)
  })
  const outcome = await Promise.race([promise.then(() => true), timeout])
  clearTimeout(late)
  return outcome
}
