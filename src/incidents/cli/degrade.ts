// `portcullis degrade`: sets the degrade mode of a cluster, and shows whether it is in force everywhere.

import { getCluster, metadataOf, readPositiveDuration, withControlPlane } from '../../cli/client/control-plane.ts'
import { waitApplied } from '../../cli/client/wait-applied.ts'
import type { ClientsSeen, UpstreamClusterStatus } from '../../gateway/api/upstream-cluster/status.ts'
import type { UpstreamCluster } from '../../gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { buildClusterIndex } from '../../gateway/core/cluster/cluster-index.ts'
import { compileCluster } from '../../gateway/core/cluster/compile-cluster.ts'
import { compileDegrade } from '../../gateway/core/cluster/compile-settings.ts'
import type { CompiledCluster, CompiledDegrade } from '../../gateway/core/cluster/compiled-cluster.ts'
import { lookupCluster } from '../../gateway/core/cluster/lookup-cluster.ts'
import { assumeUser } from '../../gateway/core/identity/assume-user.ts'
import { checkDegrade } from '../../gateway/core/policy/degrade.ts'
import { parseRequestInfo } from '../../gateway/core/request/request-info.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import { type DegradeOptions, readChange, type SwitchChange } from './change.ts'
import { showLocal } from './local.ts'
import { type RecoveryChange, readRecovery, recoveryReport, startRecovery, watchRecovery } from './recover.ts'
import { degradeOf, describe, faultsOf, inForceText } from './state.ts'

const RECENT_MS = 10 * 60_000
const HEARTBEAT = ['PUT', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/any'] as const
const EVICTION = ['DELETE', '/api/v1/namespaces/any/pods/any'] as const
const KUBELET: UserInfo = assumeUser('system:node:any', ['system:nodes'])
/** Deletes pods of nodes without heartbeats: with its own service accounts, and without. */
const CONTROLLERS: readonly UserInfo[] = [
  'system:kube-controller-manager',
  'system:serviceaccount:kube-system:node-controller',
].map((name) => assumeUser(name, undefined))

const MANAGER = 'portcullis-degrade'
const WHEN_AWAY = ' While it is away: --local, on the machine of each gateway'

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
  for (const fault of faults) err(`${force ? 'warning' : 'error'}: ${fault}\n`)
  if (faults.length === 0 || force) return true
  err('error: nothing was changed; --force sets the mode all the same\n')
  return false
}

async function write(
  client: ObjectClient,
  before: JsonObject,
  change: SwitchChange | undefined,
  recovery: RecoveryChange | undefined,
  options: DegradeOptions,
): Promise<JsonObject> {
  if (change !== undefined) return await throwSwitch(client, options.cluster, change)
  return recovery === undefined ? before : await startRecovery(client, before, recovery, options, MANAGER)
}

async function throwSwitch(client: ObjectClient, name: string, change: SwitchChange): Promise<JsonObject> {
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

interface GuardedSwitch {
  /** Its current state. */
  readonly object: JsonObject
  readonly change: SwitchChange
  readonly nowMs: number
  /** URL of the API server in which this command changes it; '' = unknown. */
  readonly server: string
  /** The user that this server sees as the caller. Called only if the command itself goes through the gateway. */
  operator(): Promise<UserInfo | undefined>
}

/**
 * Checks before the switch is thrown: which heartbeats would stop, which controllers evict pods of nodes without them, and whether
 * the mode could still be lifted. `--force` overrides them. Returns objections as sentences; none = it is safe.
 */
async function guardRails(guarded: GuardedSwitch): Promise<readonly string[]> {
  const { object, change } = guarded
  // In shadow mode nothing is refused.
  if (change.mode === 'Off' || change.shadow === true) return []
  const { expiresAt: _, ...given } = degradeOf(object)
  const degrade = compileDegrade({ ...given, mode: change.mode, shadow: false }, false)
  const lane = await laneFault(guarded, degrade)
  return [...heartbeatFaults(guarded, degrade), ...(lane === undefined ? [] : [lane])]
}

function heartbeatFaults({ object, change: { mode }, nowMs }: GuardedSwitch, degrade: CompiledDegrade): string[] {
  if (passes(degrade, HEARTBEAT, KUBELET)) return []
  const found: string[] = []
  const controllers = seenText(object, 'controllerManager', nowMs)
  if (controllers !== '') {
    found.push(
      `${mode} stops heartbeats, and kube-controller-manager ${controllers}: it goes past the gateway, and evicts the pods of all nodes that become NotReady`,
    )
  } else if (CONTROLLERS.some((user) => passes(degrade, EVICTION, user))) {
    found.push(
      `${mode} stops heartbeats, and spec.degrade.exempt lets kube-controller-manager delete pods: it evicts those of all nodes that become NotReady`,
    )
  }
  if (seenText(object, 'kubelets', nowMs) === '') {
    found.push(
      `${mode} cuts off kubelets, which come through this gateway: nodes become NotReady; HeartbeatsOnly keeps them Ready`,
    )
  }
  return found
}

/** '' = it came through a replica lately; otherwise since when it hasn't. */
function seenText(object: JsonObject, client: keyof ClientsSeen, nowMs: number): string {
  const { gateways = [] } = (object['status'] as UpstreamClusterStatus | undefined) ?? {}
  const times = gateways.map(({ lastSeen }) => Date.parse(lastSeen?.[client] ?? '')).filter((ms) => !Number.isNaN(ms))
  const lastMs = Math.max(...times)
  if (times.length === 0) return 'has never come through it'
  return nowMs - lastMs <= RECENT_MS
    ? ''
    : `has not come through it for ${Math.floor((nowMs - lastMs) / 60_000)} minutes`
}

/** If the command goes through the gateway to the cluster itself, it must still be allowed later. */
async function laneFault(
  { object, change: { mode }, server, operator }: GuardedSwitch,
  degrade: CompiledDegrade,
): Promise<string | undefined> {
  const { name } = metadataOf(object)
  if (!comesThrough(object, server)) return undefined
  const lift = ['PATCH', `/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters/${name}`] as const
  const user = await operator()
  if (user !== undefined && passes(degrade, lift, user)) return undefined
  const who = user === undefined ? 'you' : `user "${user.name}"`
  return `${mode} cuts off ${who}: this command itself comes through the gateway to ${name} (${server}), and could not lift the mode again; name ${who} in spec.degrade.exempt`
}

/** By name, address or path; a cluster addressed by none of these might be the default one. */
function comesThrough(object: JsonObject, server: string): boolean {
  if (!URL.canParse(server)) return false
  const { host, hostname, port, pathname } = new URL(server)
  const compiled = compiledOf(object)
  if (compiled === undefined) return false
  const localPort = port === '' ? 443 : Number(port)
  const localAddress = hostname.replace(/^\[|\]$/g, '')
  const found = lookupCluster(buildClusterIndex([compiled]), {
    authority: host,
    target: pathname,
    localAddress,
    localPort,
  })
  return !('unknown' in found) && found.via !== 'default'
}

/** undefined = it is invalid, and so serves no request. */
function compiledOf(object: JsonObject): CompiledCluster | undefined {
  try {
    return compileCluster({ object: object as JsonObject & UpstreamCluster, revision: '' })
  } catch {
    return undefined
  }
}

function passes(degrade: CompiledDegrade, [method, target]: readonly [string, string], user: UserInfo): boolean {
  const info = parseRequestInfo(method, target)
  return !('failure' in info) && checkDegrade(degrade, info, user, '', 0) !== 'refuse'
}
