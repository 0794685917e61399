// `portcullis degrade`: sets the degrade mode of a cluster, and shows whether it is in force everywhere.

import { getCluster, readPositiveDuration, withControlPlane } from '../../cli/client/control-plane.ts'
import { waitApplied } from '../../cli/client/wait-applied.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import { type Change, type DegradeOptions, readChange } from './change.ts'
import { guardRails } from './guard-rails.ts'
import { showLocal } from './local.ts'
import { type RecoveryChange, readRecovery, recoveryReport, startRecovery, watchRecovery } from './recover.ts'
import { describe, faultsOf, inForceText } from './state.ts'

const MANAGER = 'portcullis-degrade'
const WHEN_AWAY = ' While it is away: --local, on the machine of each gateway'

/**
 * Resolves with the exit code: 1 after an error, if the effective mode differs from the mode set, or with `status` if a replica does
 * not have it in force in time, or only in shadow mode.
 */
export function degrade(options: DegradeOptions): Promise<number> {
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
  change: Change,
): Promise<boolean> {
  const operator = (): Promise<UserInfo | undefined> => whoAmI(client)
  const faults = await guardRails({ object, change, nowMs: now(), server: server || given, operator })
  for (const fault of faults) err(`${force ? 'warning' : 'error'}: ${fault}\n`)
  if (faults.length === 0 || force) return true
  err('error: nothing was changed; --force sets the mode all the same\n')
  return false
}

async function write(
  client: ObjectClient,
  before: JsonObject,
  change: Change | undefined,
  recovery: RecoveryChange | undefined,
  options: DegradeOptions,
): Promise<JsonObject> {
  if (change !== undefined) return await throwSwitch(client, options.cluster, change)
  return recovery === undefined ? before : await startRecovery(client, before, recovery, options, MANAGER)
}

async function throwSwitch(client: ObjectClient, name: string, change: Change): Promise<JsonObject> {
  const patch = { spec: { degrade: change } }
  const options = { fieldManager: MANAGER }
  return await client.patch(UPSTREAM_CLUSTERS, { namespace: '', name }, 'application/merge-patch+json', patch, options)
}

/** Only used to create one: nothing is stored. */
const SELF_REVIEWS: ResourceKind = {
  ...LEASES,
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectReview',
  plural: 'selfsubjectreviews',
  namespaced: false,
}

/** The user that the API server sees as the caller; undefined = it doesn't say, like all before Kubernetes 1.28. */
export async function whoAmI(client: ObjectClient): Promise<UserInfo | undefined> {
  const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview', metadata: {} }
  const answer = await client.create(SELF_REVIEWS, asked).catch(() => undefined)
  const user = recordOf(recordOf(answer?.['status'])['userInfo'])
  const name = textOf(user['username'])
  if (name === '') return undefined
  const groups = Array.isArray(user['groups']) ? user['groups'].map(String) : []
  return { name, uid: '', groups, extra: {} }
}
