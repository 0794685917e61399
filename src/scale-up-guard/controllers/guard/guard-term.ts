// Serves one ScaleUpGuard in the leader: evaluates the groups on a change or when due. A backoff is written to the status,
// where all replicas see it, before anything else is done for it; a later term resumes from the status.

import { conditionsOf, withCondition } from '../../../gateway/core/status/conditions.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { patchSame } from '../../../kube/controllers/kernel/object-patch.ts'
import { type ReconcileOutcome, WorkQueue } from '../../../kube/controllers/kernel/work-queue.ts'
import { type CompiledSelector, compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import type { GuardCondition, ScaleUpGuardStatus } from '../../api/scale-up-guard.ts'
import { changedRequest, ExponentialBackoff } from '../../core/cluster-state.ts'
import type { CompiledGuard } from '../../core/guard/compile-guard.ts'
import { evaluateGroup, type GroupEvaluation, SETTLE_MS } from '../../core/guard/evaluate-group.ts'
import {
  type BackoffCause,
  type GroupReport,
  type RememberedGroup,
  rememberedGroups,
  statusGroups,
} from '../../core/guard/guard-status.ts'
import { type FoundGroup, findGroups } from '../../core/guard/machine-groups.ts'
import { type Correction, type CorrectionResult, correctGroup } from './correct-group.ts'
import { guardCondition, statusOfGuards } from './guard-conditions.ts'
import { GuardedObjects } from './guarded-objects.ts'

/** Events of guards, for metrics and Kubernetes Events. */
export interface GuardEvents {
  backedOff(guard: CompiledGuard, group: string, cause: BackoffCause, untilMs: number): void
  /** @param text what was done, or why it was not */
  corrected(guard: CompiledGuard, group: string, result: CorrectionResult, text: string): void
  /** Groups, and how many of them are backed off. */
  counted(guard: CompiledGuard, groups: number, backedOff: number): void
  /** No longer served here. */
  ended(guard: CompiledGuard): void
}

interface GuardTermDeps {
  /** API server of the ScaleUpGuards. */
  readonly control: ObjectClient
  readonly management: ObjectClient
  readonly workload: ObjectClient
  /** Checked before each write. */
  isLeader(): boolean
  readonly clock: Clock
  readonly log: Logger
  readonly events: GuardEvents
}

/** Debounces bursts of changes. */
const QUIET_MS = 50
/** With very many machines, evaluation may take at most one part in this many of the time. */
const EVALUATION_SHARE = 20
/** After a failed write. */
const RETRY_MS = 2_000
/** After a correction that the cluster refused. */
const FAILED_MS = 10_000
/** Upper bound for the next evaluation. */
const LONGEST_MS = 600_000

export class GuardTerm {
  readonly #deps: GuardTermDeps
  readonly #guard: CompiledGuard
  /** Last version read or written. */
  #object: JsonObject
  readonly #selector: CompiledSelector | undefined
  readonly #objects: GuardedObjects
  readonly #backoff: ExponentialBackoff<BackoffCause>
  #conditions: readonly GuardCondition[]
  #known: Map<string, RememberedGroup>
  #written = ''
  #quietMs = QUIET_MS
  readonly #queue: WorkQueue
  #stopped = false

  /** @param object as last seen: its status holds the state of earlier terms */
  constructor(deps: GuardTermDeps, guard: CompiledGuard, object: JsonObject) {
    this.#deps = deps
    this.#guard = guard
    this.#object = object
    this.#selector = guard.groupSelector === undefined ? undefined : compileSelector(guard.groupSelector)
    this.#known = new Map(rememberedGroups(object))
    this.#backoff = new ExponentialBackoff(guard.policy.backoff)
    this.#conditions = conditionsOf(object)
    this.#queue = new WorkQueue({
      reconcile: () => this.#look(),
      onError: (_, error) =>
        deps.log.warn('a scale-up guard cannot be served', { guard: guard.name, why: errorMessage(error) }),
      clock: deps.clock,
      random: () => 1,
      limit: 1,
      pace: { firstBackoffMs: RETRY_MS, longestBackoffMs: RETRY_MS },
    })
    for (const [name, { backoff }] of this.#known) if (backoff !== undefined) this.#backoff.restore(name, backoff)
    this.#objects = new GuardedObjects({
      guard,
      management: deps.management,
      workload: deps.workload,
      clock: deps.clock,
      onChange: () => this.#wake(this.#quietMs),
    })
    this.#wake(QUIET_MS)
  }

  /** No writes afterwards. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#objects.stop()
    await this.#queue.stop()
    this.#deps.events.ended(this.#guard)
  }

  #wake(ms: number): void {
    if (Number.isFinite(ms)) this.#queue.add('', Math.min(ms, LONGEST_MS))
  }

  async #look(): Promise<ReconcileOutcome> {
    const { isLeader, clock } = this.#deps
    if (this.#stopped || !isLeader()) return 'done'
    const startMs = clock.monotonic()
    const corrections = this.#evaluate()
    this.#quietMs = Math.max(QUIET_MS, (clock.monotonic() - startMs) * EVALUATION_SHARE)
    await this.#writeStatus()
    let waitMs = Number.POSITIVE_INFINITY
    for (const correction of corrections) waitMs = Math.min(waitMs, await this.#correct(correction))
    if (corrections.length > 0) await this.#writeStatus()
    this.#wake(waitMs)
    return 'done'
  }

  #reports: GroupReport[] = []

  #evaluate(): readonly Correction[] {
    const { guard, objects } = { guard: this.#guard, objects: this.#objects }
    const nowMs = this.#deps.clock.now()
    const { fault, nodesFault } = objects
    for (const [type, why] of [
      ['Ready', fault],
      ['NodesKnown', nodesFault],
    ] as const) {
      this.#conditions = withCondition(
        this.#conditions,
        guardCondition(type, why, 'NotWatched', guard.generation),
        nowMs,
      )
    }
    // Don't act on stale data.
    if (fault !== '') return []
    this.#backoff.removeStale(nowMs)
    const { policy } = guard
    const canSeeNodes = nodesFault === ''
    const patient = canSeeNodes ? policy : { ...policy, noNodeMs: Number.POSITIVE_INFINITY }
    const reports: GroupReport[] = []
    const corrections: Correction[] = []
    for (const found of findGroups(objects.objects(), this.#selector)) {
      const { id } = found.group
      const known = this.#known.get(id)
      // Without Nodes the failures of a MachinePool are not visible.
      if (!canSeeNodes && found.group.machines === undefined) {
        if (known !== undefined)
          reports.push({ ...known, ...UNKNOWN, name: id, shadow: policy.shadow, healthCheck: '' })
        continue
      }
      const evaluation = evaluateGroup(found.group, known?.memory, patient, nowMs)
      if (evaluation.isNew) this.#fail(found, evaluation, nowMs)
      this.#wake(evaluation.againInMs ?? Number.POSITIVE_INFINITY)
      reports.push(this.#reportOf(found, evaluation, known, nowMs))
      const { correction } = evaluation
      if (correction !== undefined && !policy.shadow) corrections.push({ found, ...correction })
    }
    this.#keep(reports, nowMs)
    return corrections
  }

  #fail({ group }: FoundGroup, { failures }: GroupEvaluation, nowMs: number): void {
    const before = this.#backoff.entry(group.id)
    // Failures during a backoff belong to the same attempt.
    const isSame = before !== undefined && before.untilMs >= nowMs
    const attempt = (before?.error.attempt ?? 0) + (isSame ? 0 : 1)
    const machines = group.machines?.filter(({ deleting }) => !deleting).length ?? group.replicas
    const reason = failures[0]?.reason ?? ''
    const cause = { attempt, failed: failures.length, machines, reason }
    const untilMs = this.#backoff.fail(group.id, cause, nowMs)
    this.#deps.events.backedOff(this.#guard, group.id, cause, untilMs)
  }

  #reportOf(
    { group, facts, healthCheck }: FoundGroup,
    evaluation: GroupEvaluation,
    known: RememberedGroup | undefined,
    nowMs: number,
  ): GroupReport {
    const { memory } = evaluation
    return {
      name: group.id,
      memory,
      evaluation,
      backoff: this.#backoff.entry(group.id),
      request: this.#requestOf({ group, facts }, known, nowMs),
      lastAction: known?.lastAction ?? '',
      lastActionMs: known?.lastActionMs ?? 0,
      shadow: this.#guard.policy.shadow,
      healthCheck,
    }
  }

  #requestOf(
    { group, facts }: Pick<FoundGroup, 'group' | 'facts'>,
    known: RememberedGroup | undefined,
    nowMs: number,
  ): RememberedGroup['request'] {
    const nodes = group.machines?.filter(({ hasNode }) => hasNode).length ?? group.nodes
    if (known === undefined || nodes >= group.replicas) return undefined
    const delta = group.replicas - known.memory.replicas
    if (delta === 0) return known.request
    const changed = changedRequest(known.request, delta, this.#guard.policy.noNodeMs, nowMs)
    return changed === undefined ? undefined : { ...changed, by: facts.writer || (known.request?.by ?? '') }
  }

  #keep(reports: GroupReport[], nowMs: number): void {
    this.#reports = reports
    this.#known = new Map(reports.map((report) => [report.name, report]))
    for (const { backoff } of reports) {
      if (backoff !== undefined && backoff.untilMs >= nowMs) this.#wake(backoff.untilMs - nowMs + QUIET_MS)
    }
  }

  /** Never rejects. @returns milliseconds until the next evaluation of the group */
  async #correct(correction: Correction): Promise<number> {
    const { management, isLeader, events, log } = this.#deps
    const { found, machines, replicas } = correction
    const { id } = found.group
    const { result, message } = await correctGroup(correction, {
      client: management,
      group: this.#guard.group,
      groupKind: this.#objects.kind(found.facts.kind),
      machineKind: this.#objects.kind('Machine'),
      mayWrite: () => !this.#stopped && isLeader(),
    })
    if (result === 'failed')
      log.warn('a node group cannot be corrected', { guard: this.#guard.name, group: id, why: message })
    const marked = machines.length === 1 ? '1 machine' : `${machines.length} machines`
    const done = `target ${found.group.replicas} -> ${replicas}, ${marked} marked for deletion`
    const text = result === 'done' ? done : `failed: ${message}`
    events.corrected(this.#guard, id, result, text)
    if (result !== 'stale') this.#remember(id, text, result === 'done' ? replicas : found.group.replicas)
    // Another client may have read the target before it was lowered, and write it back.
    return result === 'failed' ? FAILED_MS : SETTLE_MS
  }

  /** @param replicas the target known to us: another client wrote any other value */
  #remember(id: string, text: string, replicas: number): void {
    const nowMs = this.#deps.clock.now()
    this.#reports = this.#reports.map((report) => {
      if (report.name !== id) return report
      const { memory, request, lastAction, lastActionMs } = report
      const delta = replicas - memory.replicas
      const left = request && changedRequest(request, delta, this.#guard.policy.noNodeMs, nowMs)
      return {
        ...report,
        memory: { ...memory, replicas },
        request: request && left && { ...request, ...left },
        lastAction: text,
        lastActionMs: text === lastAction && delta === 0 ? lastActionMs : nowMs,
      }
    })
    this.#known = new Map(this.#reports.map((report) => [report.name, report]))
  }

  /** @throws {Error} (rejects) if the write fails: don't continue without state that a later term can resume from */
  async #writeStatus(): Promise<void> {
    const { control, isLeader, clock, events } = this.#deps
    const nowMs = clock.now()
    const reports = this.#objects.fault === '' ? this.#reports : undefined
    const backedOff = reports?.filter(({ backoff }) => backoff !== undefined && backoff.untilMs >= nowMs).length ?? 0
    const status: ScaleUpGuardStatus = {
      observedGeneration: this.#guard.generation,
      ...(reports !== undefined && {
        groupCount: reports.length,
        backedOffCount: backedOff,
        groups: statusGroups(reports),
      }),
      conditions: this.#conditions,
    }
    const text = JSON.stringify(status)
    if (reports !== undefined) events.counted(this.#guard, reports.length, backedOff)
    if (text === this.#written) return
    if (this.#stopped || !isLeader()) throw new Error('it no longer leads')
    this.#object = await patchSame(statusOfGuards(control), this.#object, { status })
    this.#written = text
  }
}

const UNKNOWN: Pick<GroupReport, 'evaluation'> = { evaluation: { failures: [], inaction: 'none-failed' } }
