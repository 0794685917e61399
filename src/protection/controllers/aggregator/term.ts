// The aggregator of a cell while it leads: follows the pods, and counts for the protectors whose counts may have
// changed. Its state ends with the term.

import { certainSkewMs } from '../../../gateway/core/clocks/cell-clock.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { errorName } from '../../../kube/controllers/error-name.ts'
import type { ReconcileOutcome } from '../../../kube/controllers/kernel/work-queue.ts'
import { POD_PROTECTORS } from '../../api/pod-protector-kind.ts'
import { compareVersions, joinVersions } from '../../core/history/resource-version.ts'
import { agingProtectors } from '../../core/ledger/cells.ts'
import type { LiveProtector } from '../../state/protectors.ts'
import { CellPods, type CountedPods } from './cell-pods.ts'
import { AdmissionTimes, afterError, type Counted, countPods } from './count.ts'
import type { PodAggregatorDeps, PodAggregatorDescription } from './deps.ts'
import { type CellMember, MemberStream } from './member.ts'
import { type PodChange, sameForCounting, sameLabels } from './pod-snapshot.ts'
import { Recounts } from './recounts.ts'

/** Between two checks. */
const CHECK_INTERVAL_MS = 5_000

/** Concurrent protectors; never the same one twice. */
const CONCURRENCY = 4
/** A timer may fire slightly early, and the pod would then be counted one aggregation later. */
const TIMER_SLACK_MS = 2
/** While the cell's clocks are unknown: how often pods that have just become ready are checked again. */
const CLOCK_LOOK_MS = 1_000
/** How often within `staleAfter` the term looks for statuses that are about to become stale. */
const REFRESHES = 12
const MIN_REFRESH_MS = 100

export class AggregatorTerm {
  readonly #deps: PodAggregatorDeps
  readonly #members: readonly MemberStream[]
  readonly #pods: CellPods
  readonly #admissions = new AdmissionTimes()
  readonly #restored: RestoredCell
  readonly #recounts: Recounts
  readonly #unlisten: () => void
  readonly #refreshing: NodeJS.Timeout | undefined
  /** Why the last count could not be written; '' = it was written. */
  #writeFault = ''
  /** When `#writeFault` last appeared or went away: wall clock, milliseconds. */
  #writtenSinceMs: number
  /** The protector whose own write is being fed back: it needs no recount. */
  #telling = ''
  #stopped = false

  /** @throws {SyntaxError} if a pod selector is invalid */
  constructor(deps: PodAggregatorDeps, members: readonly CellMember[]) {
    const { cell, clock, log, protectors, settings } = deps
    this.#deps = deps
    this.#writtenSinceMs = clock.now()
    this.#recounts = new Recounts(deps, (key) => this.#count(key), CONCURRENCY)
    this.#restored = new RestoredCell({
      cell,
      readVersion: () => this.#newestVersion(),
      clock,
      log,
      onRestored: () => {
        this.#pods.restored()
        this.#recounts.advanced()
      },
    })
    this.#unlisten = protectors.onChange((live, gone) => this.#onProtector(live, gone))
    if (settings.staleAfterMs > 0) {
      const everyMs = Math.max(MIN_REFRESH_MS, settings.staleAfterMs / REFRESHES)
      this.#refreshing = setInterval(() => this.#refresh(), everyMs)
      this.#refreshing.unref()
    }
    const streams = {
      cell,
      clock,
      log,
      onGone:
        members.length < 2
          ? undefined
          : (name: string, uid: string, version: string) => this.#pods.forget(name, uid, version),
      onReplaced: () => this.#onReplaced(),
      onChanged: (change: PodChange) => this.#onChanged(change),
      onAdvanced: () => this.#recounts.advanced(),
    }
    this.#members = members.map((member) => new MemberStream(member, streams))
    this.#pods = new CellPods(new Map(this.#members.map(({ name, pods }) => [name, pods])))
  }

  describe(): PodAggregatorDescription {
    return {
      cell: this.#deps.cell,
      clusters: this.#members.map(({ name }) => name),
      active: this.#pods.complete,
      pods: this.#pods.size,
      resourceVersion: this.#pods.version,
      streamTime: this.#streamTime(),
      current: this.#members.every(({ current }) => current),
      ...this.#state(),
      queued: this.#recounts.queued,
      waiting: this.#recounts.waiting,
    }
  }

  pods(): CountedPods | undefined {
    const known = this.#pods.complete && this.#members.every(({ current }) => current)
    return known ? this.#pods : undefined
  }

  /** The current problem, and since when. */
  #state(): Pick<PodAggregatorDescription, 'leads' | 'sinceMs' | 'message'> {
    const silent = this.#members.find(({ message }) => message !== '')
    if (silent !== undefined) return { leads: true, sinceMs: silent.sinceMs, message: silent.message }
    const followedMs = Math.max(...this.#members.map(({ sinceMs }) => sinceMs))
    const sinceMs = this.#writeFault === '' ? followedMs : this.#writtenSinceMs
    return { leads: true, sinceMs, message: this.#writeFault }
  }

  /** Starts no more counts; resolves when the running ones are done. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearInterval(this.#refreshing)
    this.#unlisten()
    const counting = this.#recounts.stop()
    await Promise.all(this.#members.map((member) => member.stop()))
    await counting
  }

  // === events of the clusters ===

  #onReplaced(): void {
    this.#recounts.handle('', 'List', () => {
      for (const live of this.#deps.protectors.values()) this.#recounts.mark(live, 'List')
    })
  }

  #onChanged({ before, after }: PodChange): void {
    if (before !== undefined && after !== undefined && sameForCounting(before, after)) return
    const { protectors } = this.#deps
    // A protector that counted it before must be recounted, too.
    const counted = before !== undefined && (after === undefined || !sameLabels(before, after)) ? before : undefined
    this.#recounts.handle((after ?? before)?.namespace ?? '', 'Pod', () => {
      for (const pod of [counted, after]) {
        if (pod === undefined) continue
        for (const live of protectors.aggregating(pod.namespace, pod.labels)) this.#recounts.mark(live, 'Pod')
      }
    })
  }

  /** The earliest of all clusters; undefined = unknown for one of them. */
  #streamTime(): number | undefined {
    let least = Number.POSITIVE_INFINITY
    for (const { streamTime } of this.#members) {
      if (streamTime.time === undefined) return undefined
      least = Math.min(least, streamTime.time)
    }
    return Number.isFinite(least) ? least : undefined
  }

  /** For the cluster that has been silent longest. */
  #heardAtMs(): number {
    return Math.min(...this.#members.map(({ heardAtMs }) => heardAtMs))
  }

  // === what to count ===

  #onProtector(live: LiveProtector, gone: boolean): void {
    if (gone) {
      this.#recounts.forget(live.key)
      this.#admissions.forget(live.key)
    }
    if (gone || live.key === this.#telling) return
    const { namespace = '' } = live.protector.metadata
    this.#recounts.handle(namespace, 'PodProtector', () => this.#recounts.mark(live, 'PodProtector'))
  }

  /** Recounts so that an idle cell that is still heard from doesn't become stale. */
  #refresh(): void {
    const { protectors, cell, settings } = this.#deps
    if (!this.#pods.complete) return
    const aging = agingProtectors(protectors.values(), cell, settings.staleAfterMs, this.#heardAtMs() * 1000)
    for (const live of aging) this.#recounts.mark(live, 'List')
  }

  // === one count ===

  async #count(key: string): Promise<ReconcileOutcome> {
    const { protectors, clock, log, events, cell } = this.#deps
    const live = protectors.get(key)
    if (live === undefined || !this.#mayWrite()) return 'done'
    const beginMs = clock.monotonic()
    let error = ''
    let outcome: ReconcileOutcome = 'done'
    try {
      const { progress } = this.#recounts
      const counted = this.#countNow(live)
      if (counted.changed) await this.#write(live, counted)
      this.#follow(live, counted, progress)
      if (counted.changed) this.#written('')
    } catch (caught) {
      error = errorName(caught)
      outcome = await this.#outcomeOf(live, caught)
      const why = errorMessage(caught)
      if (outcome === 'failed') {
        log.warn('a PodProtector could not be brought up to date', { protector: key, cell, why })
        this.#written(`PodProtector ${key} could not be brought up to date: ${why}`)
      }
    }
    events.reconciled(live.protector.metadata.namespace ?? '', error, clock.monotonic() - beginMs)
    return outcome
  }

  #written(fault: string): void {
    if ((fault === '') !== (this.#writeFault === '')) this.#writtenSinceMs = this.#deps.clock.now()
    this.#writeFault = fault
  }

  #mayWrite(): boolean {
    return !this.#stopped && this.#pods.complete && this.#deps.leadership.isLeader()
  }

  #countNow({ key, protector }: LiveProtector): Counted {
    const { cell, settings, clock, clocks } = this.#deps
    const [nowMs, monotonicMs] = [clock.now(), clock.monotonic()]
    return countPods(protector, {
      cell,
      pods: this.#pods,
      streamTime: this.#streamTime(),
      heardAt: Math.round(this.#heardAtMs() * 1000),
      restored: this.#restored.restored,
      settings,
      nowMs,
      monotonicMs,
      time: clocks.at(cell, monotonicMs),
      skewMs: certainSkewMs(clocks.skew(cell, nowMs, monotonicMs)),
      knownSince: this.#admissions.of(key, this.#nowMicros()),
    })
  }

  async #write({ protector }: LiveProtector, { status }: Counted): Promise<void> {
    this.#learn(await this.#deps.core.update(POD_PROTECTORS, { ...protector, status }, 'status'))
  }

  /** The next aggregation builds on it, even if the watch lags. */
  #learn(object: JsonObject): void {
    const { metadata } = object as { metadata?: { namespace?: string; name?: string } }
    this.#telling = `${metadata?.namespace}/${metadata?.name}`
    try {
      this.#deps.protectors.put(object)
    } finally {
      this.#telling = ''
    }
  }

  #follow(live: LiveProtector, counted: Counted, progress: number): void {
    if (this.#stopped) return
    const { kept, streamTimeFrom, nextAvailableMs, outdated } = counted
    if (nextAvailableMs !== undefined) {
      const { cell, clock, clocks } = this.#deps
      const atMostMs = clocks.at(cell, clock.monotonic()) === undefined ? CLOCK_LOOK_MS : nextAvailableMs
      this.#recounts.mark(live, 'MinReady', Math.min(nextAvailableMs, atMostMs) + TIMER_SLACK_MS)
    }
    if (streamTimeFrom !== undefined) for (const { streamTime } of this.#members) streamTime.need(streamTimeFrom)
    if (outdated) void this.#restored.check(countedVersion(live, this.#deps.cell))
    if (kept === 0 && !outdated) this.#recounts.awaitNothing(live)
    else this.#recounts.awaitMore(live, progress)
  }

  /** On the clock of stream times; all members share it. */
  #nowMicros(): number {
    return Math.max(...this.#members.map(({ streamTime }) => streamTime.now()))
  }

  async #newestVersion(): Promise<string> {
    const versions = this.#members.map(async (member): Promise<[string, string]> => {
      return [member.name, await member.newestVersion()]
    })
    return joinVersions(new Map(await Promise.all(versions)))
  }

  async #outcomeOf(live: LiveProtector, error: unknown): Promise<ReconcileOutcome> {
    const { outcome, current } = await afterError(this.#deps.core, live.protector, error)
    if (current !== undefined) this.#learn(current)
    return outcome
  }
}

function countedVersion({ protector }: LiveProtector, cell: string): string {
  return protector.status?.cells.find(({ cellID }) => cellID === cell)?.aggregation?.resourceVersion ?? ''
}

interface RestoredCellDeps {
  readonly cell: string
  /** The newest resourceVersion of the cell, by a consistent read. */
  readVersion(): Promise<string>
  readonly clock: Clock
  readonly log: Logger
  /** Called once, on detection. */
  onRestored(): void
}

/**
 * Detects that a cell has gone back in time, as after a restored backup. A status counted from a newer snapshot is then outdated, not
 * ahead of us.
 */
class RestoredCell {
  readonly #deps: RestoredCellDeps
  #restored = false
  #checking = false
  #nextMs = Number.NEGATIVE_INFINITY

  constructor(deps: RestoredCellDeps) {
    this.#deps = deps
  }

  /** Once true, it stays true. */
  get restored(): boolean {
    return this.#restored
  }

  /** Another replica has counted the cell at `version`, newer than known here: usually we just lag. Never rejects. */
  async check(version: string): Promise<void> {
    const { clock, cell, log } = this.#deps
    if (this.#checking || this.#restored || clock.monotonic() < this.#nextMs) return
    this.#checking = true
    this.#nextMs = clock.monotonic() + CHECK_INTERVAL_MS
    try {
      const newest = await this.#deps.readVersion()
      if ((compareVersions(newest, version) ?? 0) >= 0) return
      log.warn('a cell has gone back in time and is counted again', { cell, resourceVersion: newest, counted: version })
      this.#restored = true
      this.#deps.onRestored()
    } catch {
      // The next count of a protector checks again.
    } finally {
      this.#checking = false
    }
  }
}
