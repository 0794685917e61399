// `portcullis degrade`: sets the degrade mode of a cluster, and shows whether it is in force everywhere.

import { faultLines } from '../../cli/client/change-plan.ts'
import { getCluster, metadataOf, readPositiveDuration, withControlPlane } from '../../cli/client/control-plane.ts'
import { membersNote } from '../../cli/client/federated-members.ts'
import { waitApplied } from '../../cli/client/wait-applied.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import { type DegradeOptions, readChange, type SwitchChange } from './change.ts'
import { guardRails, whoAmI } from './guard-rails.ts'
import { showLocal } from './local.ts'
import { type RecoveryChange, readRecovery, recoveryReport, startRecovery, watchRecovery } from './recover.ts'
import { describe, faultsOf, inForceText, isForgotten } from './state.ts'

export const DEGRADE_MANAGER = 'portcullis-degrade'
export const WHEN_AWAY = ' While it is unavailable, use --local on the machine of each gateway'

/**
 * Resolves with the exit code: 1 after an error, if the effective mode differs from the mode set, or with `status` if a replica does
 * not have it in force in time, or only in shadow mode.
 */
export function degradeCommand(options: DegradeOptions): Promise<number> {
  if (options.off === true) {
    options.err('error: --off lifts a switch that was set with --local; give --local too, or --mode Off\n')
    return Promise.resolve(1)
  }
  return withControlPlane({ ...options, away: WHEN_AWAY }, async (client, server) => {
    const { cluster, status, watch = false, now, out, err } = options
    const recovery = readRecovery(options)
    const change = readChange(options)
    const timeoutMs = readPositiveDuration('--timeout', options.timeout ?? '30s', parseDuration)
    const before = await getCluster(client, cluster)
    const note = membersNote(before, [cluster])
    if (note !== '') err(`note: ${note}\n`)
    if (change !== undefined && !(await mayThrow(options, client, server, before, change))) return 1
    const after = await write(client, before, change, recovery, options)
    out(`${describe(after, now())}\n`)
    if (change !== undefined && change.mode !== 'Off' && change.expiresAt === null) {
      err('warning: without --ttl the mode stays until it is switched off\n')
    }
    if (change !== undefined && !status) out('written; --status shows where it is in force\n')
    if (recovery !== undefined && !status) out('written; --status --watch shows the steps\n')
    const inForce = inForceText(after, now())
    const code = status ? await waitApplied({ client, timeoutMs, now, out, err, inForce }, cluster) : 0
    if (status && !watch) out(recoveryReport(after))
    if (status && options.dataDir !== undefined) showLocal(options.dataDir, out, err, cluster)
    const watched = watch ? await watchRecovery(client, cluster, options) : 0
    const faults = faultsOf(after, change)
    for (const fault of faults) err(`error: ${fault}\n`)
    return faults.length > 0 || watched > 0 ? 1 : code
  })
}

/** Whether no guard rail objects, or `--force` overrides them; prints the objections. */
async function mayThrow(
  { now, err, force = false, server: given = '' }: DegradeOptions,
  client: ObjectClient,
  server: string,
  object: JsonObject,
  change: SwitchChange,
): Promise<boolean> {
  const operator = (): Promise<UserInfo | undefined> => whoAmI(client)
  const faults = await guardRails({ object, change, nowMs: now(), server: server || given, operator })
  if (faults.length === 0) return true
  // As in the plan of many clusters: what operators have written goes to a terminal.
  const why = new Map([[metadataOf(object).name, faults.join('; ')]])
  for (const line of faultLines(why)) err(`${force ? 'warning' : 'error'}: ${line}\n`)
  if (force) return true
  err('error: nothing was changed; use --force to set the mode anyway\n')
  return false
}

async function write(
  client: ObjectClient,
  before: JsonObject,
  change: SwitchChange | undefined,
  recovery: RecoveryChange | undefined,
  options: DegradeOptions,
): Promise<JsonObject> {
  if (change !== undefined) {
    return await throwSwitch(client, options.cluster, change, isForgotten(before, change.mode, options.now()))
  }
  return recovery === undefined ? before : await startRecovery(client, before, recovery, options, DEGRADE_MANAGER)
}

async function throwSwitch(
  client: ObjectClient,
  name: string,
  change: SwitchChange,
  forgets: boolean,
): Promise<JsonObject> {
  const patch = { spec: { degrade: { ...change, ...(forgets && { before: null }) } } }
  const options = { fieldManager: DEGRADE_MANAGER }
  return await client.patch(UPSTREAM_CLUSTERS, { namespace: '', name }, 'application/merge-patch+json', patch, options)
}
