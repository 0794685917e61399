// Changes many clusters: shows the plan, asks, writes in waves, and says what is in force, as their statuses have it.

import { listed } from '../../gateway/core/choice/choose-clusters.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import type { ObjectClient, ObjectList } from '../../kube/api/object-client.ts'
import { type ConfirmOptions, confirmed } from '../command/confirm.ts'
import { type ChangePlan, faultLines, type PlannedChange, planText } from './change-plan.ts'
import { FollowedClusters } from './followed-clusters.ts'
import { type AppliedCluster, waitAllApplied } from './wait-all-applied.ts'
import { DEFAULT_WAVE_SIZE, inWaves, readWaveSize, type WaveOutcome } from './waves.ts'

/** Flags of commands that change many clusters. */
export interface ChangeManyOptions extends ConfirmOptions {
  /** Show the plan, and do nothing. Default false. */
  readonly dryRun?: boolean
  /** A number, or a percentage. Default 25%. */
  readonly waveSize?: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Between two looks at what is in force. */
  readonly pollMs?: number
}

export interface ManyChanges<T extends PlannedChange> {
  readonly client: ObjectClient
  readonly plan: ChangePlan<T>
  /** Number of UpstreamClusters; undefined = unknown. */
  readonly known: number | undefined
  /** All of them as they were when the plan was made; undefined = unknown. */
  readonly listed: ObjectList | undefined
  /** For each wave. */
  readonly timeoutMs: number
  /** @returns the object after it; rejects with a Failure if it can't */
  change(item: T): Promise<JsonObject>
  /** What an object that is in force means, in words, and what is wrong with it; '' = nothing. */
  verdict(object: JsonObject): { readonly state: string; readonly fault: string }
  /** How to go on after a failure, and how to take it back. */
  readonly afterFailure: string
}

type ReportOptions = ChangeManyOptions & { readonly output?: string }

interface FollowedChanges<T extends PlannedChange> extends ManyChanges<T> {
  /** undefined = the waits look at lists. */
  readonly followed?: FollowedClusters
}

/** So many clusters get a line each without being asked for. */
export const LINES = 20

/** Resolves with the exit code: 0 if all that were chosen have it in force. */
export async function changeMany<T extends PlannedChange>(
  many: ManyChanges<T>,
  options: ReportOptions,
): Promise<number> {
  const { plan, known } = many
  const { out, err } = options
  const size = readWaveSize(options.waveSize ?? DEFAULT_WAVE_SIZE, plan.changes.length)
  out(planText(plan, known))
  const code = plan.stopped.length > 0 ? 1 : 0
  if (options.dryRun === true) {
    out('nothing was changed: this is --dry-run\n')
    return code
  }
  const count = plan.changes.length
  if (count === 0) {
    if (plan.unchanged.length === 0) err('error: nothing was changed\n')
    else await report(many, [], options)
    return code
  }
  const waves = Math.ceil(count / size)
  out(
    `  ${waves === 1 ? 'all at once' : `in ${waves} waves of at most ${size}, each in force before the next begins`}\n`,
  )
  const stopped = plan.stopped.length === 0 ? '' : `, and leave out ${plan.stopped.length}`
  if (!(await confirmed(options, `Change ${count} cluster${count === 1 ? '' : 's'}${stopped}?`))) return 1
  const followed = many.listed && new FollowedClusters(many.client, many.listed)
  try {
    return Math.max(code, await changeInWaves({ ...many, ...(followed && { followed }) }, size, options))
  } finally {
    await followed?.stop()
  }
}

/** @returns 1 if one of the clusters does not have it in force */
async function changeInWaves<T extends PlannedChange>(
  many: FollowedChanges<T>,
  size: number,
  options: ReportOptions,
): Promise<number> {
  const { out, err } = options
  const outcome = await inWaves(many.plan.changes, size, {
    change: async (item) => {
      const after = await many.change(item)
      many.followed?.answered(after)
    },
    settle: async (items) => {
      try {
        return faultsOf(await look(many, items, options), items, many)
      } catch (error) {
        // The changes are written: whatever comes between, the command says which.
        return new Map(items.map(({ name }) => [name, `not known whether it is in force: ${errorMessage(error)}`]))
      }
    },
    onWave: (wave, all, items) => {
      if (all > 1) out(`wave ${wave} of ${all}: in force on ${listed(items.map(({ name }) => name))}\n`)
    },
  })
  const unforced = await report(many, outcome.inForce, options)
  if (outcome.failedIn > 0) failed(outcome, many, err)
  return outcome.failedIn > 0 || unforced ? 1 : 0
}

function failed<T extends PlannedChange>(
  { waves, failedIn, inForce, changed, failures, untouched }: WaveOutcome<T>,
  { afterFailure }: ManyChanges<T>,
  err: ConfirmOptions['err'],
): void {
  for (const line of faultLines(failures)) err(`error: ${line}\n`)
  const names = untouched.map(({ name }) => name)
  const rest = names.length === 0 ? 'none is left' : `${names.length} not touched: ${listed(names)}`
  const where = waves === 1 ? '' : ` in wave ${failedIn} of ${waves}`
  const written = changed.length === 0 ? '' : `, ${changed.length} changed but not in force`
  const refused = failures.size - changed.length
  const not = refused === 0 ? '' : `, ${refused} not changed`
  err(`error: stopped${where}: ${inForce.length} in force${written}${not}; ${rest}\n`)
  err(`${afterFailure}\n`)
}

async function look<T extends PlannedChange>(
  { client, timeoutMs, followed }: FollowedChanges<T>,
  items: readonly { readonly name: string }[],
  { now, pollMs, listsFirst = false }: Pick<ChangeManyOptions, 'now' | 'pollMs'> & { readonly listsFirst?: boolean },
): Promise<ReadonlyMap<string, AppliedCluster>> {
  const names = items.map(({ name }) => name)
  return names.length === 0
    ? new Map()
    : await waitAllApplied(
        { client, timeoutMs, now, listsFirst, ...(pollMs !== undefined && { pollMs }), ...(followed && { followed }) },
        names,
      )
}

function faultsOf<T extends PlannedChange>(
  found: ReadonlyMap<string, AppliedCluster>,
  items: readonly { readonly name: string }[],
  { verdict }: ManyChanges<T>,
): ReadonlyMap<string, string> {
  const faults = new Map<string, string>()
  for (const { name } of items) {
    const applied = found.get(name)
    const fault = applied === undefined ? 'it was deleted' : applied.fault || verdict(applied.object).fault
    if (fault !== '') faults.set(name, fault)
  }
  return faults
}

/** @returns whether one of them does not have it in force */
async function report<T extends PlannedChange>(
  many: FollowedChanges<T>,
  changed: readonly T[],
  options: ReportOptions,
): Promise<boolean> {
  const { out, err, output } = options
  const items = [...changed, ...many.plan.unchanged].sort((a, b) => (a.name < b.name ? -1 : 1))
  let found: ReadonlyMap<string, AppliedCluster>
  try {
    found = await look(many, items, { ...options, listsFirst: true })
  } catch (error) {
    err(`error: not known what is in force: ${errorMessage(error)}\n`)
    return true
  }
  const faults = faultsOf(found, items, many)
  const counts = new Map<string, number>()
  for (const { name } of items) {
    const applied = found.get(name)
    if (applied === undefined || faults.has(name)) continue
    const { state } = many.verdict(applied.object)
    counts.set(state, (counts.get(state) ?? 0) + 1)
    const on = `on ${applied.applied} of ${applied.replicas} replica${applied.replicas === 1 ? '' : 's'}`
    if (output === 'wide' || items.length <= LINES) out(`${name}: ${state} ${on}\n`)
  }
  for (const line of faultLines(faults)) err(`error: ${line}\n`)
  const texts = [...counts].map(([state, count]) => `${count} ${state}`)
  const not = faults.size === 0 ? '' : `; ${faults.size} not: ${listed([...faults.keys()])}`
  out(`${items.length} cluster${items.length === 1 ? '' : 's'}: ${texts.join(', ')}${not}\n`)
  return faults.size > 0
}
