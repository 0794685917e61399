// `portcullis scale why`: which pods a new number of replicas deletes, by which rule, and what PodProtectors say to it. Nothing is
// written; everything is read with the rights of whoever asks.

import type { ObjectClient } from '../../api/ports/object-client.ts'
import { errorMessage } from '../../api/validation/error-message.ts'
import { UserError } from '../../api/validation/field-errors.ts'
import { planScaleDown } from '../../core/scale/rank/scale-down-plan.ts'
import { type ControlPlaneOptions, withControlPlane } from '../client/control-plane.ts'
import { reportUserErrors } from '../command/output.ts'
import { listProtectors } from '../protect/objects.ts'
import { type GivenWorker, isGiven, readByDefault, readGivenWorker } from '../protect/pod.ts'
import { findCell, type ProtectionFlags, readSettings } from '../protect/why.ts'
import { askProtectors, type ProtectionQuestion } from './protection.ts'
import { jsonReport, textReport } from './report.ts'
import { NEEDS, parseTarget, type ReadWorkload, readWorkload, type Target } from './workload.ts'

export interface ScaleWhyOptions extends ControlPlaneOptions, GivenWorker, ProtectionFlags {
  /** `deployment/web`. */
  readonly target: string
  readonly replicas: number
  /** Default `default`. */
  readonly namespace?: string
  /** An UpstreamCluster with spec.podProtection, or the name of a cell. Default: no PodProtector is asked. */
  readonly cluster?: string
  /** Default `text`. */
  readonly output?: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** The controller may look so much later; ages that change places meanwhile are not certain. */
const WINDOW_MS = 60_000

/** Resolves with the exit code: 1 when protection would refuse a deletion, when that was asked and cannot be told, and for errors. */
export function scaleWhy(options: ScaleWhyOptions): Promise<number> {
  return reportUserErrors(options.err, async () => {
    const { cluster } = options
    const target = readTarget(options)
    const read = (worker: ObjectClient): Promise<ReadWorkload> => readWorkload(worker, target)
    if (cluster !== undefined) {
      const needs = `get and list of podprotectors and upstreamclusters, ${NEEDS}`
      return withControlPlane({ ...options, needs }, (client) => withProtection(options, cluster, target, client, read))
    }
    // There is one API server only, and it has the workload.
    const unasked = ['no PodProtector was asked: give --cluster']
    const asked = { needs: NEEDS, kind: target.resource }
    if (isGiven(options))
      return answer(options, target, await readGivenWorker(options, asked, read), undefined, unasked)
    return withControlPlane({ ...options, ...asked, owner: 'the cluster' }, async (client) =>
      answer(options, target, await read(client), undefined, unasked),
    )
  })
}

async function withProtection(
  options: ScaleWhyOptions,
  cluster: string,
  target: Target,
  client: ObjectClient,
  read: (worker: ObjectClient) => Promise<ReadWorkload>,
): Promise<number> {
  const notes: string[] = []
  const settings = readSettings(options)
  let question: ProtectionQuestion | undefined
  try {
    const asked = await findCell(client, cluster)
    question = { asked, table: await listProtectors(client, target.namespace), settings }
    if (asked.note !== '') notes.push(asked.note)
  } catch (error) {
    const why = errorMessage(error)
    notes.push(`what PodProtectors say is not known: they cannot be read (${why}); see --kubeconfig and --context`)
  }
  const needed = { needs: NEEDS, kind: target.resource }
  if (isGiven(options)) return answer(options, target, await readGivenWorker(options, needed, read), question, notes)
  const { kubeconfig = '', context } = options
  const what = `${target.resource.singular} ${target.namespace}/${target.name}`
  const upstream = question?.asked.upstream ?? ''
  const reading = { what, upstream, kubeconfig, ...(context !== undefined && { context }) }
  const { value, by } = await readByDefault(client, reading, read)
  return answer(options, target, value, question, [...notes, `the workload is read ${by}`])
}

function readTarget({ target, namespace = 'default', output = 'text' }: ScaleWhyOptions): Target {
  if (output === 'text' || output === 'json') return parseTarget(target, namespace)
  throw new UserError(`-o ${output} is not known`, 'write -o json, or leave it out')
}

function answer(
  options: ScaleWhyOptions,
  target: Target,
  read: ReadWorkload,
  question: ProtectionQuestion | undefined,
  more: readonly string[],
): number {
  const { replicas, cluster, output, out, err, now } = options
  const nowMs = now()
  const window = { fromMs: nowMs, toMs: nowMs + WINDOW_MS }
  const plan = planScaleDown({ kind: target.kind, ...read, replicas, window })
  const protection = question && askProtectors(question, target, read, plan, nowMs)
  const notes = [...plan.notes, ...more]
  const answered = { target, plan, protection, notes }
  if (output === 'json') out(jsonReport(answered))
  else {
    out(textReport(answered))
    for (const note of notes) err(`note: ${note}\n`)
  }
  if (protection !== undefined) return protection.refuses ? 1 : 0
  return cluster === undefined ? 0 : 1
}
