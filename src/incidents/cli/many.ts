// `portcullis degrade` about several clusters: one plan, one confirmation, waves, and what is in force of it.

import { type ChangeManyOptions, changeMany } from '../../cli/client/change-many.ts'
import type { LeftOut } from '../../cli/client/change-plan.ts'
import { type ClusterArguments, readArguments, readChosen } from '../../cli/client/chosen-clusters.ts'
import { metadataOf, readPositiveDuration, withControlPlane } from '../../cli/client/control-plane.ts'
import { membersNote } from '../../cli/client/federated-members.ts'
import { patchAsPlanned } from '../../cli/client/patch-as-planned.ts'
import { refusedPatches } from '../../cli/client/patch-right.ts'
import { Failure } from '../../cli/client/waves.ts'
import { reportUserErrors } from '../../cli/command/output.ts'
import type { ReadChoice } from '../../gateway/core/choice/choose-clusters.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import { readChange, type SwitchChange, type SwitchFlags } from './change.ts'
import { DEGRADE_MANAGER, WHEN_AWAY } from './degrade.ts'
import { guardRails, whoAmI } from './guard-rails.ts'
import { type PlannedSwitch, planRecovery, planSwitch, type SwitchVerdict, stateText } from './many-plan.ts'
import { statusOfMany, watchMany } from './many-status.ts'
import { type RecoveryChange, readRecovery, requireLeader } from './recover.ts'
import { degradeOf, faultsOf, modeAt } from './state.ts'

export interface ManySwitchOptions extends SwitchFlags, ClusterArguments, Omit<ChangeManyOptions, 'out' | 'err'> {
  /** `wide`: a line for each cluster, however many they are. */
  readonly output?: string
}

/** Resolves with the exit code: 1 after an error, or if one of the clusters does not have it in force. */
export function degradeMany(options: ManySwitchOptions): Promise<number> {
  return reportUserErrors(options.err, async () => {
    checkFlags(options)
    return await switchChosen(options, readArguments(options))
  })
}

function switchChosen(options: ManySwitchOptions, read: ReadChoice): Promise<number> {
  return withControlPlane({ ...options, away: WHEN_AWAY }, async (client, server) => {
    const { watch = false } = options
    const recovery = readRecovery(options)
    const change = readChange(options)
    const timeoutMs = readPositiveDuration('--timeout', options.timeout ?? '30s', parseDuration)
    const changes = recovery !== undefined || change !== undefined
    const { objects, ...listed } = await readChosen(client, read, changes)
    const names = objects.map((object) => metadataOf(object).name)
    let code = 0
    if (change !== undefined || recovery !== undefined) {
      const verdicts = await verdictsOf({ client, server, objects, change, recovery }, options)
      const many = { ...listed, client, timeoutMs, plan: planOf(titleOf(change, recovery), verdicts) }
      code = await changeMany(
        {
          ...many,
          change: (item) => write(client, item, options),
          verdict: (object) => verdictOn(object, change, options.now()),
          afterFailure: AFTER_FAILURE,
        },
        options,
      )
    } else code = await statusOfMany(client, names, timeoutMs, options)
    return watch && options.dryRun !== true ? Math.max(code, await watchMany(client, names, options)) : code
  })
}

const AFTER_FAILURE =
  'repeat the command to continue with the rest (--except NAME leaves one out); --recover for the same clusters reverts the changes'

function checkFlags({
  local,
  off,
  dataDir,
  mode,
  recover,
  status,
  yes,
  dryRun,
  waveSize,
  output,
}: ManySwitchOptions): void {
  if (local === true || off === true || dataDir !== undefined) {
    throw new UserError('--local is about one cluster', 'name it in full, and no other; leave --selector and --all out')
  }
  if (output !== undefined && output !== 'wide') {
    throw new UserError(`--output ${JSON.stringify(output)} is not known`, 'write -o wide, or leave it out')
  }
  const changes = mode !== undefined || recover === true
  if (status && !changes && (yes === true || dryRun === true || waveSize !== undefined)) {
    throw new UserError(
      '--yes, --dry-run and --wave-size are for changes',
      'leave them out, or give --mode or --recover',
    )
  }
}

function titleOf(change: SwitchChange | undefined, recovery: RecoveryChange | undefined): string {
  if (change === undefined) return recovery === undefined ? '' : 'back to what applied before'
  const { mode, shadow, expiresAt, reason } = change
  if (mode === 'Off') return 'degrade mode Off'
  const until = expiresAt === null ? 'without an end' : `until ${expiresAt}`
  return `degrade mode ${mode}${shadow === true ? ' in shadow, nothing is refused,' : ''} ${until} (${reason ?? ''})`
}

interface Asked {
  readonly client: ObjectClient
  readonly server: string
  readonly objects: readonly JsonObject[]
  readonly change: SwitchChange | undefined
  readonly recovery: RecoveryChange | undefined
}

async function verdictsOf(
  { client, server, objects, change, recovery }: Asked,
  options: ManySwitchOptions,
): Promise<ReadonlyMap<string, SwitchVerdict>> {
  const { now, err, force = false } = options
  if (recovery !== undefined) await requireLeader(client, now(), err)
  let user: Promise<UserInfo | undefined> | undefined
  const operator = (): Promise<UserInfo | undefined> => {
    user ??= whoAmI(client)
    return user
  }
  const found = new Map<string, SwitchVerdict>()
  const names = objects.map((object) => metadataOf(object).name)
  for (const object of objects) {
    const { name } = metadataOf(object)
    if (change !== undefined) {
      const at = server === '' ? (options.server ?? '') : server
      const objections = await guardRails({ object, change, nowMs: now(), server: at, operator })
      found.set(name, withNote(planSwitch(object, change, objections, force, now()), names))
    } else if (recovery !== undefined) {
      found.set(name, withNote(planRecovery(object, recovery, force, now()), names))
    }
  }
  const toWrite = [...found].flatMap(([name, verdict]) => ('planned' in verdict ? [name] : []))
  for (const [name, why] of await refusedPatches(client, toWrite)) found.set(name, { stopped: why })
  return found
}

function withNote(verdict: SwitchVerdict, changed: readonly string[]): SwitchVerdict {
  if (!('planned' in verdict)) return verdict
  const { planned } = verdict
  const notes = [planned.note, membersNote(planned.object, changed)]
  return { planned: { ...planned, note: notes.filter((note) => note !== '').join('; ') } }
}

function planOf(
  title: string,
  verdicts: ReadonlyMap<string, SwitchVerdict>,
): {
  readonly title: string
  readonly changes: readonly PlannedSwitch[]
  readonly unchanged: readonly LeftOut[]
  readonly stopped: readonly LeftOut[]
} {
  const changes: PlannedSwitch[] = []
  const unchanged: LeftOut[] = []
  const stopped: LeftOut[] = []
  for (const [name, verdict] of verdicts) {
    if ('planned' in verdict) changes.push(verdict.planned)
    else if ('unchanged' in verdict) unchanged.push({ name, why: verdict.unchanged })
    else stopped.push({ name, why: verdict.stopped })
  }
  return { title, changes, unchanged, stopped }
}

/** Writes the plan, unless the switch has been changed since it was shown. */
async function write(
  client: ObjectClient,
  { object, degrade }: PlannedSwitch,
  { now }: ManySwitchOptions,
): Promise<JsonObject> {
  const after = await patchAsPlanned(client, object, () => ({ degrade }), DEGRADE_MANAGER, {
    part: (one) => degradeOf(one),
    describe: (one) => stateText(one, now()),
  })
  const written = degradeOf(after)
  for (const field of ['before', 'recovery'] as const) {
    if (degrade[field] === undefined || degrade[field] === null || written[field] !== undefined) continue
    const fix = 'its CustomResourceDefinition is older: kubectl apply --server-side -f deploy/crds'
    throw new Failure(`the API server has dropped spec.degrade.${field}: ${fix}`, true)
  }
  return after
}

function verdictOn(
  object: JsonObject,
  change: SwitchChange | undefined,
  nowMs: number,
): { readonly state: string; readonly fault: string } {
  const text = stateText(object, nowMs)
  const state = text === 'Off' ? 'Off' : `${text}${text.includes(',') ? ',' : ''} in force`
  if (change === undefined) return { state, fault: '' }
  const [fault = ''] = faultsOf(object, change)
  const changed =
    modeAt(object, nowMs) !== change.mode || (degradeOf(object).shadow === true) !== (change.shadow === true)
  return { state, fault: fault === '' && changed ? `${text}: another client has changed it since` : fault }
}
