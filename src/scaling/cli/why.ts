// `portcullis scale why`: which pods a new number of replicas deletes, by which rule, and what PodProtectors say to it. Writes
// nothing; reads everything with the caller's rights.

import { type ControlPlaneOptions, withControlPlane } from '../../cli/client/control-plane.ts'
import { reportUserErrors } from '../../cli/command/output.ts'
import type { ControllerManager } from '../../gateway/api/upstream-cluster/controller-manager.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { textTable } from '../../kit/core/text/text-table.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { ProtectionSettings } from '../../process/api/protection-settings.ts'
import { POD_PROTECTORS } from '../../protection/api/pod-protector-kind.ts'
import type { PodFacts, ProtectorAnswer } from '../../protection/api/protection.ts'
import { listProtectedClusters, listProtectors } from '../../protection/cli/objects.ts'
import {
  type GivenWorker,
  isGiven,
  type ObjectReads,
  readByDefault,
  readGivenWorker,
} from '../../protection/cli/pod.ts'
import {
  cellNamed,
  type ProtectedCell,
  type ProtectionFlags,
  readSettings,
  whyNotAsked,
} from '../../protection/cli/why.ts'
import { podFacts } from '../../protection/core/quota/pod-facts.ts'
import { askProtectors } from '../../protection/core/scale-down/ask-protectors.ts'
import type { ProtectorTable } from '../../protection/state/protectors.ts'
import { leavingPods } from '../core/protection/leaving-pods.ts'
import { type PlannedPod, type PlannedSet, planScaleDown, type ScaleDownPlan } from '../core/rank/scale-down-plan.ts'
import { type Costs, withCosts } from '../core/victim-choice/find-victims.ts'
import { readSteering, type Steering, steer, unsteered } from './policy.ts'
import { NEEDS, parseTarget, type ReadWorkload, readWorkload, type Target } from './workload.ts'

export interface ScaleWhyOptions extends ControlPlaneOptions, GivenWorker, ProtectionFlags {
  /** `deployment/web`. */
  readonly target: string
  readonly replicas: number
  /** Default `default`. */
  readonly namespace?: string
  /** An UpstreamCluster with spec.podProtection, one that has such members, or the name of a cell. Default: no PodProtector is asked. */
  readonly cluster?: string
  /** Default `text`. */
  readonly output?: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

const UNASKED = [
  'no UpstreamCluster was asked: PodProtectors may refuse, ScaleDownPolicies may choose other pods, and kube-controller-manager is taken to be 1.31 or later with its default feature gates; give --cluster',
]
/** The controller may act this much later; if pods' ages change order within that time, the victims are uncertain. */
const WINDOW_MS = 60_000

/** Resolves with the exit code: 1 if protection would refuse a deletion, if it was asked but is unknown, and for errors. */
export function scaleWhy(options: ScaleWhyOptions): Promise<number> {
  return reportUserErrors(options.err, async () => {
    const { cluster } = options
    const target = readTarget(options)
    if (cluster !== undefined) {
      const needs = `get and list of podprotectors, scaledownpolicies and upstreamclusters, ${NEEDS}`
      return withControlPlane({ ...options, needs, kind: POD_PROTECTORS }, (client) =>
        withProtection(options, cluster, target, client),
      )
    }
    // There is only one API server, and it has the workload.
    const read = readScaleDown(options, target, unsteered(UNASKED))
    const asked = { needs: NEEDS, kind: target.resource }
    if (isGiven(options)) return answer(options, target, await readGivenWorker(options, asked, read), undefined, [])
    return withControlPlane({ ...options, ...asked, owner: 'the cluster' }, async (client) =>
      answer(options, target, await read(client), undefined, []),
    )
  })
}

async function withProtection(
  options: ScaleWhyOptions,
  cluster: string,
  target: Target,
  client: ObjectClient,
): Promise<number> {
  const notes: string[] = []
  let steering = unsteered(['it is unknown whether a ScaleDownPolicy chooses the pods'])
  const settings = readSettings(options)
  let asked: ProtectedCell | undefined
  let question: ProtectionQuestion | undefined
  try {
    asked = cellNamed(await listProtectedClusters(client), cluster, target.shown)
    steering = await readSteering(client, asked.upstream, asked.namespace)
    question = { asked, table: await listProtectors(client, asked.namespace), settings }
    if (asked.note !== '') notes.push(asked.note)
  } catch (error) {
    // The namespace names no member of the federated cluster.
    if (error instanceof UserError) throw error
    const why = errorMessage(error)
    notes.push(`the answer of PodProtectors is unknown: they cannot be read (${why}); see --kubeconfig and --context`)
  }
  const { namespace, through } = asked ?? { ...target, through: [] }
  const read = readScaleDown(options, { ...target, namespace }, steering)
  const needed = { needs: NEEDS, kind: target.resource, through }
  if (isGiven(options)) return answer(options, target, await readGivenWorker(options, needed, read), question, notes)
  const { kubeconfig = '', context } = options
  const what = `${target.resource.singular} ${target.shown}/${target.name}`
  const reading = { what, upstream: steering.upstream, through, kubeconfig, ...(context !== undefined && { context }) }
  const { value, by } = await readByDefault(client, reading, read)
  return answer(options, target, value, question, [...notes, `the workload is read ${by}`])
}

/** All inputs of the decision, from the cluster that has the workload. */
interface ReadScaleDown extends ReadWorkload {
  readonly controller: ControllerManager
  readonly costs: Costs
  /** Complete sentences without a full stop. */
  readonly notes: readonly string[]
}

function readScaleDown(
  { replicas }: ScaleWhyOptions,
  target: Target,
  steering: Steering,
): (worker: ObjectReads) => Promise<ReadScaleDown> {
  return async (worker) => {
    const read = await readWorkload(worker, target)
    const { costs, notes } = await steer(worker, steering, target, read, replicas)
    return { ...read, controller: steering.controller, costs, notes: [...steering.notes, ...notes] }
  }
}

function readTarget({ target, namespace = 'default', output = 'text' }: ScaleWhyOptions): Target {
  if (output === 'text' || output === 'json') return parseTarget(target, namespace)
  throw new UserError(`-o ${output} is not known`, 'write -o json, or leave it out')
}

function answer(
  options: ScaleWhyOptions,
  target: Target,
  read: ReadScaleDown,
  question: ProtectionQuestion | undefined,
  more: readonly string[],
): number {
  const { replicas, cluster, output, out, err, now } = options
  const nowMs = now()
  const window = { fromMs: nowMs, toMs: nowMs + WINDOW_MS }
  const { workload, replicaSets, controller, costs } = read
  const conditions = { ...controller, window, costsOpen: costs === 'open' }
  const pods = withCosts(read.pods, costs)
  const plan = planScaleDown({ kind: target.kind, workload, replicaSets, pods, replicas, conditions })
  const protection = question && protectionAnswer(question, target, read, plan, nowMs)
  const notes = [...plan.notes, ...plan.sets.flatMap(soonNotes), ...read.notes, ...more]
  const answered = { target, plan, protection, notes }
  if (output === 'json') out(jsonReport(answered))
  else {
    out(textReport(answered))
    for (const note of notes) err(`note: ${note}\n`)
  }
  if (protection !== undefined) return protection.refuses ? 1 : 0
  return cluster === undefined ? 0 : 1
}

/** The pods certain to go if it is scaled soon, if only ages make that uncertain. */
function soonNotes({ possible: { soon } }: PlannedSet): readonly string[] {
  if (soon === undefined) return []
  const { pods, seconds } = soon
  const which = pods.length === 1 ? `${pods[0]} goes` : `${pods.join(', ')} go`
  return [`among the uncertain ones ${which} if the controller looks within ${seconds}s; then ages change places`]
}

export interface Answer {
  readonly target: Target
  readonly plan: ScaleDownPlan
  /** undefined = protectors were not asked, or could not be. */
  readonly protection: ProtectionAnswer | undefined
  /** Complete sentences without a full stop. */
  readonly notes: readonly string[]
}

const HEAD = ['POD', 'NODE', 'VERDICT', 'RULE']

export function jsonReport({ target, plan, protection, notes }: Answer): string {
  const { kind, shown: namespace, name } = target
  const { from, to, sets } = plan
  const answer = { kind, namespace, name, replicas: { from, to }, sets, protection: protection ?? null, notes }
  return `${JSON.stringify(answer, null, 2)}\n`
}

export function textReport({ target, plan: { from, to, sets }, protection }: Answer): string {
  const { resource, shown, name } = target
  const lines = [`${resource.singular} ${shown}/${name}: ${from} replicas now, ${to} asked for; ${summary(sets)}\n`]
  for (const set of sets) {
    if (sets.length > 1) lines.push(`\n${set.name}: ${set.from} pods, ${set.to} afterwards\n`)
    lines.push(textTable([HEAD, ...rowsOf(set)]))
  }
  if (protection !== undefined) lines.push(...protectionLines(protection))
  return lines.join('')
}

function summary(sets: readonly PlannedSet[]): string {
  const certain = sets.reduce((all, set) => all + set.certain.length, 0)
  const possible = sets.reduce((all, { possible: { count } }) => all + count, 0)
  const open = sets.reduce((all, { possible: { pods } }) => all + pods.length, 0)
  if (certain + possible === 0) return 'no pod goes'
  if (possible === 0) return certain === 1 ? '1 pod goes' : `${certain} pods go`
  return `${certain + possible} of its pods go: ${certain} certain, ${possible} of ${open} open`
}

function rowsOf({ certain, possible, safe }: PlannedSet): string[][] {
  const row = (verdict: string) => (pod: PlannedPod) => {
    return [pod.name, pod.node || '-', verdict, `${pod.rule}: ${pod.because}`]
  }
  return [
    ...certain.map(row('goes')),
    ...possible.pods.map(row(`${possible.count} of ${possible.pods.length}`)),
    ...safe.map(row('stays')),
  ]
}

function protectionLines({ unasked, protectors, shadow }: ProtectionAnswer): string[] {
  if (unasked !== '') return [`no PodProtector is asked: ${unasked}\n`]
  if (protectors.length === 0) return ['no PodProtector selects these pods\n']
  return protectors.map((answer) => `PodProtector ${answer.protector}: ${numbers(answer)}: ${said(answer, shadow)}\n`)
}

function numbers({ required, requiredAfter, counted, beingDeleted }: ProtectorAnswer): string {
  const after = requiredAfter === required ? '' : ` (${requiredAfter} after the change)`
  return `${required} required${after}, ${counted} counted, ${beingDeleted} being deleted`
}

function said({ deletions, refused: { least, most }, delayed }: ProtectorAnswer, shadow: boolean): string {
  const now = delayed === 0 ? '' : `; ${delayed} have to wait until earlier ones have been observed`
  if (most === 0) return `allows ${deletions === 1 ? 'the deletion' : `all ${deletions} deletions`}${now}`
  const number = least === most ? `${most}` : `${least} to ${most}`
  const refuses = shadow ? 'would refuse, were it not in dry run,' : 'refuses'
  return `${refuses} ${number} of ${deletions} deletions: too few would be left${now}`
}

/** What PodProtectors say to the deletions of the scale-down, as the gateway would ask them. */
interface ProtectionAnswer {
  readonly cell: string
  /** Nothing is refused, only counted. */
  readonly shadow: boolean
  /** Why protectors are not asked; '' = they are. */
  readonly unasked: string
  readonly protectors: readonly ProtectorAnswer[]
  /** A deletion is refused, or may be. */
  readonly refuses: boolean
}

interface ProtectionQuestion {
  readonly asked: ProtectedCell
  readonly table: ProtectorTable
  readonly settings: ProtectionSettings
}

function protectionAnswer(
  { asked, table, settings }: ProtectionQuestion,
  target: Target,
  { workload, pods }: ReadWorkload,
  plan: ScaleDownPlan,
  nowMs: number,
): ProtectionAnswer {
  const { cell, shadow } = asked
  const unasked = whyUnasked(asked, plan, pods)
  if (unasked !== '') return { cell, shadow, unasked, protectors: [], refuses: false }
  const sets = leavingPods(plan, pods, (pod) => whyNotAsked(pod, asked) === '')
  const question = { cell, kind: target.kind, workload, replicas: plan.to, sets }
  const protectors = askProtectors(question, table, settings, nowMs)
  const refuses = !shadow && protectors.some(({ refused }) => refused.most > 0)
  return { cell, shadow, unasked: '', protectors, refuses }
}

/** '' = at least one pod to be removed is protected. */
function whyUnasked(asked: ProtectedCell, { sets }: ScaleDownPlan, pods: ReadWorkload['pods']): string {
  const leaving = new Set(sets.flatMap(({ certain, possible }) => [...certain, ...possible.pods]).map(({ uid }) => uid))
  if (leaving.size === 0) return 'no pod goes'
  const going: PodFacts[] = pods.flatMap((pod) => podFacts(pod) ?? []).filter(({ uid }) => leaving.has(uid))
  const whys = new Set(going.map((pod) => whyNotAsked(pod, asked)))
  return whys.has('') ? '' : ([...whys][0] ?? '')
}
